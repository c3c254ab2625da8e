//! Keys that look like a known key to a reader that ignores case.
//!
//! Known attack: `{"method":"tools/list","Method":"tools/call"}` is two members to us and one to an upstream whose
//! JSON library matches names without case (Go's does, and folds `ſ` and the Kelvin sign too). Full Unicode case
//! folding, so `ﬁ` is `fi` as well; and `ı` and `İ` are an `i`, as they are to readers that compare capitals.

use caseless::Caseless;
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// Whether `key` is not `known` but becomes it under full Unicode case folding (`CaseFolding.txt`, status C and F), or when
/// both are written in capitals.
#[must_use]
pub fn same_but_case(key: &str, known: &str) -> bool {
    if key.is_ascii() && known.is_ascii() { same_ascii(key, known) } else { folded(key, known) }
}

/// Keys that are known, to be asked for in no more time than the asked key takes to read: a body may hold a hundred
/// thousand that are not.
#[derive(Debug)]
pub struct Known {
    keys: &'static [&'static str],
    /// Bit n: one has n bytes.
    lengths: u64,
}

impl Known {
    /// Keys of ASCII, of at most 63 bytes each.
    ///
    /// # Panics
    /// For other ones; in a `static` they do not compile.
    #[must_use]
    pub const fn new(keys: &'static [&'static str]) -> Self {
        let (mut lengths, mut rest) = (0, keys);
        while let [key, behind @ ..] = rest {
            assert!(key.is_ascii() && key.len() < 64, "expected a short key of ASCII");
            lengths |= 1 << key.len();
            rest = behind;
        }
        Self { keys, lengths }
    }

    /// The first that `key` is [`same_but_case`] as; `None` also when `key` itself is among them.
    #[must_use]
    pub fn case_variant(&self, key: &str) -> Option<&'static str> {
        if key.is_ascii() {
            return self.ascii_variant(key);
        }
        let folded = ascii(key, folding);
        let found = |text: SmallVec<[u8; 64]>| {
            self.has_one_of(text.len())
                .then(|| self.keys.iter().copied().find(|known| text.eq_ignore_ascii_case(known.as_bytes())))?
        };
        // Only these have capitals of ASCII and do not fold to it.
        let in_capitals = || key.contains(['ı', 'İ']).then(|| ascii(key, capitals_folding))?;
        folded.and_then(found).or_else(|| in_capitals().and_then(found))
    }

    fn has_one_of(&self, bytes: usize) -> bool {
        bytes < 64 && self.lengths & (1 << bytes) != 0
    }

    fn ascii_variant(&self, key: &str) -> Option<&'static str> {
        if !self.has_one_of(key.len()) {
            return None;
        }
        let mut found = None;
        for known in self.keys.iter().filter(|known| known.len() == key.len() && known.eq_ignore_ascii_case(key)) {
            if *known == key {
                return None;
            }
            found = found.or(Some(*known));
        }
        found
    }
}

/// The key with its letters outside of ASCII folded, when all of it is ASCII then and as short as [`Known`] keys are. Stops at
/// the first letter that is not.
fn ascii(key: &str, fold: impl Fn(char) -> Option<&'static str>) -> Option<SmallVec<[u8; 64]>> {
    let mut text = SmallVec::new();
    for letter in key.chars() {
        if let Ok(byte @ ..0x80) = u8::try_from(letter) {
            text.push(byte);
        } else {
            text.extend_from_slice(fold(letter)?.as_bytes());
        }
        if text.len() > 63 {
            return None;
        }
    }
    Some(text)
}

/// What a letter outside of ASCII is under full case folding, where all of that is ASCII: no others are.
fn folding(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ſ' => "s",
        '\u{212a}' => "k",
        'ß' | 'ẞ' => "ss",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' | 'ﬆ' => "st",
        _ => return None,
    })
}

/// The same of its [`capital`]s, in small letters. The Kelvin sign and the capital sharp s are capitals themselves.
fn capitals_folding(letter: char) -> Option<&'static str> {
    match letter {
        'ı' | 'İ' => Some("i"),
        '\u{212a}' | 'ẞ' => None,
        _ => folding(letter),
    }
}

fn same_ascii(key: &str, known: &str) -> bool {
    key.len() == known.len() && key.eq_ignore_ascii_case(known) && key != known
}

/// Stops at the first difference: a long key costs no more than the known one is long.
fn folded(key: &str, known: &str) -> bool {
    key != known
        && (key.chars().default_case_fold().eq(known.chars().default_case_fold()) || capitals(key).eq(capitals(known)))
}

/// As readers compare that make capitals of the letters one by one (Java's `equalsIgnoreCase` does): for them the dotless
/// `ı` is an `I` and the dotted `İ` an `i`, which full case folding keeps apart.
fn capitals(key: &str) -> impl Iterator<Item = char> + '_ {
    key.chars().flat_map(capital)
}

fn capital(letter: char) -> std::char::ToUppercase {
    if letter == 'İ' { 'i'.to_uppercase() } else { letter.to_uppercase() }
}
