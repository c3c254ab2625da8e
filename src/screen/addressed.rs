//! Text that speaks to the model instead of to whoever asked: instructions smuggled in as data.
//!
//! The list is authz-semantics §6 and deliberately short: a long one flags honest tools until nobody reads the flag.
//!
//! Every phrase has two adjacent bytes that ordinary text seldom has (`gn` of "ignore", `_r` of `id_rsa`). Blocks of the
//! text are asked for such a pair without an early exit, which the compiler turns into vector code; only where one
//! stands is the phrase spelled out. Each white space is looked at by at most one phrase before it, so hostile text
//! costs a small multiple of plain text. Letters compare without case, as a reader that folds Unicode would: `ſ` is an
//! `s`, the Kelvin sign a `k`.

#[cfg(test)]
mod tests;

/// Bytes that are asked together.
const BLOCK: usize = 32;
/// The case bit of an ASCII letter. Set on every byte that is compared: `_` becomes [`UNDERSCORE`], the others of
/// [`suspicious`] stay themselves. What else becomes equal is told apart when the phrase is spelled out.
const CASE: u8 = 0x20;
const UNDERSCORE: u8 = b'_' | CASE;

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
    let bytes = text.as_bytes();
    let mut at = 0;
    while let (Some(block), Some(next)) = (block(bytes, at), block(bytes, at.saturating_add(1))) {
        let end = at.saturating_add(BLOCK);
        if any_suspicious(block, next) && (at..end).any(|at| phrase_at(text, at, whole)) {
            return true;
        }
        at = end;
    }
    (at..bytes.len()).any(|at| phrase_at(text, at, whole))
}

fn block(bytes: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    bytes.get(at..)?.first_chunk()
}

/// Whether a pair begins anywhere in `block`; `next` is the block one byte further on.
fn any_suspicious(block: &[u8; BLOCK], next: &[u8; BLOCK]) -> bool {
    block.iter().zip(next).fold(false, |any, (one, two)| any | suspicious(*one | CASE, *two | CASE))
}

/// The pairs: one of each phrase.
#[inline]
fn suspicious(one: u8, two: u8) -> bool {
    let pair = |first: u8, second: u8| (one == first) & (two == second);
    // Not `||`: a branch would keep the compiler from comparing whole blocks.
    pair(b'g', b'n')
        | (one == b'<')
        | pair(b'd', b'o')
        | pair(b'w', b'i')
        | pair(UNDERSCORE, b'r')
        | pair(b'~', b'/')
        | pair(b'.', b'a')
}

/// Whether a phrase has its pair at byte `at`.
fn phrase_at(text: &str, at: usize, whole: bool) -> bool {
    let byte = |at: usize| text.as_bytes().get(at).map_or(0, |byte| byte | CASE);
    let from = |back: usize| at.checked_sub(back).and_then(|start| text.get(start..));
    let found = match (byte(at), byte(at.saturating_add(1))) {
        (b'g', b'n') => from(1).and_then(ignore_instructions),
        (b'<', _) => from(0).and_then(tag),
        (b'd', b'o') => from(0).and_then(keep_from_user),
        (b'w', b'i') => from(0).and_then(without_user),
        (UNDERSCORE, b'r') => from(2).filter(|_| !whole || begins_name(text, at)).and_then(|rest| word(rest, "id_rsa")),
        (b'~', b'/') => from(0).and_then(|rest| word(rest, "~/.ssh")),
        (b'.', b'a') => from(0).and_then(|rest| word(rest, ".aws/credentials")),
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
    let (_, end) = rest.split_at_checked(rest.find(['<', '>'])?)?;
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

/// Whether the `id_rsa` whose `_` is at byte `at` is not the end of a longer word: `valid_rsa` is nobody's key.
fn begins_name(text: &str, at: usize) -> bool {
    let before = at.checked_sub(3).and_then(|before| text.as_bytes().get(before));
    !before.is_some_and(u8::is_ascii_alphanumeric)
}

/// What is behind a run of white space (Unicode White_Space); `None` where there is none.
fn space(rest: &str) -> Option<&str> {
    let behind = rest.trim_start();
    (behind.len() < rest.len()).then_some(behind)
}

/// What is behind the first of `words` that stands here.
fn one_of<'t>(rest: &'t str, words: &[&str]) -> Option<&'t str> {
    words.iter().find_map(|own| word(rest, own))
}

/// What is behind `own`, which is written in lower case.
fn word<'t>(mut rest: &'t str, own: &str) -> Option<&'t str> {
    for expected in own.chars() {
        let mut chars = rest.chars();
        let c = match chars.next()? {
            'ſ' => 's',
            '\u{212A}' => 'k',
            c => c.to_ascii_lowercase(),
        };
        if c != expected {
            return None;
        }
        rest = chars.as_str();
    }
    Some(rest)
}
