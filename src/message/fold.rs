//! Keys that look like a known key to a reader that ignores case.
//!
//! Known attack: `{"method":"tools/list","Method":"tools/call"}` is two members to us and one to an upstream whose
//! JSON library matches names without case (Go's does, and folds `ſ` and the Kelvin sign too). Full Unicode case
//! folding, so `ﬁ` is `fi` as well; and `ı` and `İ` are an `i`, as they are to readers that compare capitals.

use caseless::Caseless;

#[cfg(test)]
mod tests;

/// Whether `key` is not `known` but becomes it under full Unicode case folding (`CaseFolding.txt`, status C and F), or when
/// both are written in capitals.
#[must_use]
pub fn same_but_case(key: &str, known: &str) -> bool {
    if key.is_ascii() && known.is_ascii() { ascii(key, known) } else { folded(key, known) }
}

/// The first of `known` that `key` is the [`same_but_case`] as; `None` also when `key` itself is among them.
///
/// For a key of ASCII, the usual one, that is one comparison of lengths per known key.
#[must_use]
pub fn case_variant_of<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    // The usual key is a known one, and equality is cheaper to see than its absence under folding.
    if known.contains(&key) {
        return None;
    }
    let plain = key.is_ascii();
    let same = |known: &&str| if plain && known.is_ascii() { ascii(key, known) } else { folded(key, known) };
    known.iter().copied().find(same)
}

fn ascii(key: &str, known: &str) -> bool {
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
    key.chars().map(|letter| if letter == 'İ' { 'i' } else { letter }).flat_map(char::to_uppercase)
}
