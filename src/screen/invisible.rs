//! Invisible characters: text that a model reads and a person who approves it does not see.
//!
//! Known attacks: instructions spelled in tag characters (U+E0000–E007F), words split by zero width spaces so that no
//! filter finds them, lines turned round by bidirectional controls. Not among them is what people need to write: the
//! zero width joiner (U+200D) and the variation selectors U+FE00–FE0F that make emoji, and the zero width non-joiner
//! between two letters of a script whose spelling has it.

use std::sync::LazyLock;

use super::prefilter::{ANY, Beginning, Prefilter};

#[cfg(test)]
mod tests;

const ZERO_WIDTH_NON_JOINER: char = '\u{200C}';

/// First bytes of the characters of [`is_invisible`] in UTF-8.
const BEGINNINGS: [Beginning; 8] = [
    // U+AD, U+34F.
    [b"\xC2\xCD", b"\xAD\x8F", ANY],
    // U+61C.
    [b"\xD8", b"\x9C", ANY],
    // U+115F, U+1160, U+180E.
    [b"\xE1", b"\x85\xA0", b"\x9F\xA0\x8E"],
    // U+200B, U+200C, U+200E, U+200F.
    [b"\xE2", b"\x80", b"\x8B\x8C\x8E\x8F"],
    // U+202A to U+202E.
    [b"\xE2", b"\x80", b"\xAA\xAB\xAC\xAD\xAE"],
    // U+2060 to U+2064, U+2066 to U+206F.
    [b"\xE2", b"\x81", b"\xA0\xA1\xA2\xA3\xA4\xA6\xA7\xA8\xA9\xAA\xAB\xAC\xAD\xAE\xAF"],
    // U+3164, U+FEFF, U+FFA0, U+FFF9 to U+FFFB.
    [b"\xE3\xEF", b"\x85\xBB\xBE\xBF", b"\xA4\xBF\xA0\xB9\xBA\xBB"],
    // U+E0000 to U+E007F, U+E0100 to U+E01EF.
    [b"\xF3", b"\xA0", b"\x80\x81\x84\x85\x86\x87"],
];

static PREFILTER: Prefilter = Prefilter::new(&BEGINNINGS);

/// Whether the text holds an invisible character that honest text has no use for. One pass, no allocation.
#[must_use]
pub fn contains(text: &str) -> bool {
    any(text, |at, c| is_dishonest(text, at, c))
}

/// [`contains`], or a little more often: whether the text holds an invisible character, whatever stands around it.
#[must_use]
pub fn may_contain(text: &str) -> bool {
    any(text, |_, c| is_invisible(c))
}

/// Whether `found` says so of a character that may be invisible and the byte at which it stands.
fn any(text: &str, found: impl Fn(usize, char) -> bool) -> bool {
    let char_at = |at| text.get(at..).and_then(|rest: &str| rest.chars().next());
    !text.is_ascii() && PREFILTER.search(text.as_bytes(), &|at| char_at(at).is_some_and(|c| found(at, c)))
}

/// Every invisible character that honest text has no use for and the byte at which it stands, in order.
pub fn occurrences(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|(at, c)| is_dishonest(text, *at, *c))
}

/// Whether `c`, which stands at this byte of the text, is invisible and not what its script is spelled with.
fn is_dishonest(text: &str, at: usize, c: char) -> bool {
    is_invisible(c) && !(c == ZERO_WIDTH_NON_JOINER && is_spelling(text, at))
}

/// Whether `c` is on the list of authz-semantics §6, whatever stands around it.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    // Most of any text: one comparison instead of a search through the ranges.
    c > '\u{AC}'
        && matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180E}'
            | '\u{200B}' | ZERO_WIDTH_NON_JOINER | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Whether the non-joiner at byte `at` stands between two letters of one script that is spelled with it.
fn is_spelling(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let behind = text.get(at..).and_then(|text| text.chars().nth(1));
    let (Some(before), Some(behind)) = (before, behind) else { return false };
    let alike = script(before).is_some_and(|before| script(behind) == Some(before));
    alike && LETTERS.has(before) && LETTERS.has(behind)
}

/// Which characters of the scripts of [`script`] are letters, a bit for each: a hostile text asks for two at every third
/// character, and to search Unicode's tables for each cost 14 times what honest text costs.
static LETTERS: LazyLock<Letters> = LazyLock::new(Letters::new);

struct Letters(Box<[u64]>);

impl Letters {
    const FIRST: u32 = 0x600;
    const LAST: u32 = 0xFEFF;

    fn new() -> Self {
        let mut words = vec![0; ((Self::LAST - Self::FIRST) / 64 + 1) as usize];
        for c in (Self::FIRST..=Self::LAST).filter_map(char::from_u32).filter(|c| script(*c).is_some() && is_letter(*c))
        {
            let at = u32::from(c) - Self::FIRST;
            if let Some(word) = words.get_mut(at as usize / 64) {
                *word |= 1 << (at % 64);
            }
        }
        Self(words.into())
    }

    fn has(&self, c: char) -> bool {
        let Some(at) = u32::from(c).checked_sub(Self::FIRST) else { return false };
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// Letters, vowel signs, and the signs that take a vowel away or dot a letter, which stand between a consonant and the
/// non-joiner and which Unicode does not call alphabetic.
fn is_letter(c: char) -> bool {
    let sign = |of_block: u32| (0x900..0xE00).contains(&u32::from(c)) && u32::from(c) % 0x80 == of_block;
    c.is_alphabetic() || sign(0x4D) || sign(0x3C) || matches!(c, '\u{DCA}' | '\u{1039}' | '\u{103A}' | '\u{17D2}')
}

/// The scripts whose spelling has the non-joiner (Unicode Standard §9.2, §12.1; UAX #31, contexts A1 and A2), as a
/// number for each.
fn script(c: char) -> Option<u32> {
    match u32::from(c) {
        // Arabic, its supplements and presentation forms.
        0x600..=0x6FF | 0x750..=0x77F | 0x870..=0x8FF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC => Some(0),
        // Syriac and its supplement.
        0x700..=0x74F | 0x860..=0x86F => Some(1),
        0x1000..=0x109F => Some(2),
        0x1780..=0x17FF => Some(3),
        0x1800..=0x18AF => Some(4),
        // Devanagari to Sinhala, a block of 128 each.
        indic @ 0x900..=0xDFF => Some(indic / 0x80),
        _ => None,
    }
}
