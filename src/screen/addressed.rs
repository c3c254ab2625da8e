//! Text that speaks to the model instead of to whoever asked: instructions smuggled in as data.
//!
//! The list is authz-semantics §6 and deliberately short: a long one flags honest tools until nobody reads the flag.
//!
//! Blocks of the text are asked whether a phrase may begin in them, by four of each phrase's first five bytes and without
//! an early exit, which the compiler turns into vector code; only where one may is it spelled out. White space and what
//! is inside a tag are looked at by few of the phrases before them, so hostile text costs a small multiple of plain text.
//! Letters of ASCII compare without case.

#[cfg(test)]
mod tests;

/// Bytes that are asked together.
const BLOCK: usize = 32;
/// The case bit of an ASCII letter. Set on every byte that is compared: `_` becomes [`UNDERSCORE`], the other characters
/// of [`may_begin`] stay themselves. What else becomes equal is told apart when the phrase is spelled out.
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
    let mut at = 0;
    while let Some(block) = Block::at(text.as_bytes(), at) {
        if block.places().any(|place| phrase_at(text, at.saturating_add(place), whole)) {
            return true;
        }
        at = at.saturating_add(BLOCK);
    }
    (at..text.len()).any(|at| phrase_at(text, at, whole))
}

/// What stands at each place of a block, and one, two and four bytes further on.
struct Block<'t>([&'t [u8; BLOCK]; 4]);

impl<'t> Block<'t> {
    fn at(bytes: &'t [u8], at: usize) -> Option<Self> {
        let block = |offset: usize| bytes.get(at.saturating_add(offset)..)?.first_chunk();
        Some(Self([block(0)?, block(1)?, block(2)?, block(4)?]))
    }

    /// For each place 1 where a phrase may begin, else 0. Without an early exit, for the compiler's sake.
    fn flags(&self) -> [u8; BLOCK] {
        let [first, second, third, fifth] = self.0;
        let mut flags = [0; BLOCK];
        let places = first.iter().zip(second).zip(third.iter().zip(fifth));
        for (flag, ((a, b), (c, e))) in flags.iter_mut().zip(places) {
            *flag = u8::from(may_begin(*a | CASE, *b | CASE, *c | CASE, *e | CASE));
        }
        flags
    }

    /// The places where a phrase may begin, in order.
    fn places(&self) -> impl Iterator<Item = usize> {
        let flags = self.flags();
        let any = flags != [0; BLOCK];
        any.then_some(flags)
            .into_iter()
            .flat_map(|flags| flags.into_iter().enumerate().filter_map(|(place, flag)| (flag != 0).then_some(place)))
    }
}

/// Whether a phrase may begin with these bytes, all of them with the [`CASE`] bit: its first, second, third and fifth. No
/// phrase has fewer than six.
#[allow(clippy::needless_bitwise_bool, reason = "a branch would keep the compiler from comparing whole blocks")]
#[inline]
fn may_begin(a: u8, b: u8, c: u8, e: u8) -> bool {
    let name = |letter: u8| (letter == b's') | (letter == b'i');
    let ignore = (a == b'i') & (b == b'g') & (e == b'r');
    let opening = name(b) & ((e == b't') | (e == b'o'));
    let closing = (b == b'/') & name(c) & ((e == b's') | (e == b'p'));
    // White space of any kind is below the digits or beyond ASCII.
    let keep = (a == b'd') & (b == b'o') & ((c == b'n') | !(b'0'..0x80).contains(&c));
    let without = (a == b'w') & (b == b'i') & (e == b'o');
    let key = (a == b'i') & (b == b'd') & (c == UNDERSCORE);
    let keys = (a == b'~') & (b == b'/') | (a == b'.') & (b == b'a') & (e == b'/');
    ignore | (a == b'<') & (opening | closing) | keep | without | key | keys
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
