//! Text that speaks to the model instead of to whoever asked: instructions smuggled in as data.
//!
//! The list is authz-semantics §6 and deliberately short: a long one flags honest tools until nobody reads the flag.
//!
//! The text is searched for beginnings of phrases first, many places at once ([`Prefilter`]); only where one stands is the
//! phrase spelled out. White space and what is inside a tag are looked at by few of the phrases before them, so hostile
//! text costs a small multiple of plain text. Letters of ASCII compare without case.

use super::prefilter::{Beginning, Prefilter};

#[cfg(test)]
mod tests;

/// The case bit of an ASCII letter.
const CASE: u8 = 0x20;

/// What the phrases begin with.
const BEGINNINGS: [Beginning; 8] = [
    [b"iI", b"gG", b"nN"],
    [b"<", b"iIsS", b"mMnNyY"],
    [b"<", b"/", b"iIsS"],
    // Behind *do* any white space, of which this is the first byte.
    [b"dD", b"oO", b"nN\t\n\x0B\x0C\r \xC2\xE1\xE2\xE3"],
    [b"wW", b"iI", b"tT"],
    [b"iI", b"dD", b"_"],
    [b"~", b"/", b"."],
    [b".", b"aA", b"wW"],
];

static PREFILTER: Prefilter = Prefilter::new(&BEGINNINGS);

/// Whether the text holds a phrase of the list. One pass, no allocation.
#[must_use]
pub fn contains(text: &str) -> bool {
    find(text, true)
}

/// [`contains`], or a little more often: what [`contains`] finds in any part of the text is found here.
///
/// So one look at a whole message tells whether its strings need one each.
#[must_use]
pub fn may_contain(text: &str) -> bool {
    find(text, false)
}

/// `whole`: the text is one string and not many one after the other, so that what stands in front of a phrase counts.
fn find(text: &str, whole: bool) -> bool {
    PREFILTER.search(text.as_bytes(), &|at| phrase_at(text, at, whole))
}

/// Whether a phrase stands at byte `at`.
fn phrase_at(text: &str, at: usize, whole: bool) -> bool {
    let Some(rest) = text.get(at..) else { return false };
    let Some([first, second]) = rest.as_bytes().first_chunk() else { return false };
    let found = match (first | CASE, second | CASE) {
        (b'i', b'g') => ignore_instructions(rest),
        (b'i', b'd') => word(rest, "id_rsa").filter(|_| !whole || begins_name(text, at)),
        (b'<', _) => tag(rest),
        (b'd', b'o') => keep_from_user(rest),
        (b'w', b'i') => without_user(rest),
        (b'~', _) => word(rest, "~/.ssh"),
        (b'.', _) => word(rest, ".aws/credentials"),
        _ => None,
    };
    found.is_some()
}

/// *ignore* (*all* | *any*)? (*previous* | *prior* | *above*) (*instructions* | *prompts*).
fn ignore_instructions(rest: &str) -> Option<&str> {
    let rest = space(word(rest, "ignore")?)?;
    let rest = one_of(rest, &["all", "any"]).and_then(space).unwrap_or(rest);
    let rest = space(one_of(rest, &["previous", "prior", "above"])?)?;
    one_of(rest, &["instructions", "prompts"])
}

/// A tag `important`, `system`, `instruction` or `instructions`, opening or closing, with or without attributes.
///
/// What stands behind the name is searched up to the next `<`, so no byte is searched for two tags.
fn tag(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix('<')?;
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let rest = one_of(rest, &["important", "system", "instructions", "instruction"])?;
    if !rest.starts_with(|c: char| matches!(c, '>' | '/') || c.is_whitespace()) {
        return None;
    }
    let (_, end) = rest.split_at_checked(memchr::memchr2(b'<', b'>', rest.as_bytes())?)?;
    end.strip_prefix('>')
}

/// (*do not* | *don't*) (*tell* | *inform* | *mention* | *alert* | *notify*) *the user*.
fn keep_from_user(rest: &str) -> Option<&str> {
    let rest = match one_of(rest, &["don't", "don’t"]) {
        Some(rest) => rest,
        None => word(space(word(rest, "do")?)?, "not")?,
    };
    the_user(one_of(space(rest)?, &["tell", "inform", "mention", "alert", "notify"])?)
}

/// *without* (*telling* | *informing* | *asking*) *the user*.
fn without_user(rest: &str) -> Option<&str> {
    let rest = space(word(rest, "without")?)?;
    the_user(one_of(rest, &["telling", "informing", "asking"])?)
}

fn the_user(rest: &str) -> Option<&str> {
    word(space(word(space(rest)?, "the")?)?, "user")
}

/// Whether the `id_rsa` at byte `at` is not the end of a longer word: `valid_rsa` is nobody's key.
fn begins_name(text: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    !before.is_some_and(u8::is_ascii_alphanumeric)
}

/// What is behind a run of white space (Unicode's `White_Space`); `None` where there is none.
fn space(rest: &str) -> Option<&str> {
    let behind = rest.trim_start();
    (behind.len() < rest.len()).then_some(behind)
}

/// What is behind the first of `words` that stands here.
fn one_of<'t>(rest: &'t str, words: &[&str]) -> Option<&'t str> {
    words.iter().find_map(|own| word(rest, own))
}

/// What is behind `own`, which is written in lower case.
fn word<'t>(rest: &'t str, own: &str) -> Option<&'t str> {
    let (here, behind) = rest.split_at_checked(own.len())?;
    here.eq_ignore_ascii_case(own).then_some(behind)
}
