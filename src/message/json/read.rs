//! The pass over the bytes. Iterative; every position is checked, nothing is sliced that could be out of range.

#![expect(clippy::inline_always, reason = "measured: what runs for every node saves a seventh of the read that way")]

use std::ops::Range;

use smallvec::SmallVec;

use super::scan::plain_prefix;
use super::{Fault, FaultKind, Kind, Limits, Node, Tape};

/// Objects of at most this many members compare their keys pairwise; larger ones sort.
const PAIRWISE: usize = 12;

/// A container that is still open.
struct Open {
    /// Tape index of the container.
    node: u32,
    object: bool,
    count: u32,
}

struct Reader<'t> {
    text: &'t str,
    limits: Limits,
    at: usize,
    tape: Tape,
    /// Messages are shallow: the usual stack needs no allocation.
    stack: SmallVec<[Open; 12]>,
    /// The keys of a large object that closes, each a [`piece`] of it and its tape index; reused.
    keys: Vec<(u64, u32)>,
}

type Step<T = ()> = Result<T, Fault>;

/// Most bytes that are kept free for decoded strings before any is read.
const ROOM: usize = 64 * 1024;

/// Reads the tape of `text`.
pub(super) fn tape(text: &str, limits: Limits) -> Step<Tape> {
    if u32::try_from(text.len()).is_err() {
        return Err(Fault { kind: FaultKind::TooMany, at: 0 });
    }
    // One node for eight bytes is enough for listings; denser texts grow the vector.
    let nodes = Vec::with_capacity((text.len() / 8).saturating_add(8).min(limits.nodes));
    let tape = Tape { nodes, unescaped: String::new(), unescaped_ends: Vec::new() };
    let mut reader = Reader { text, limits, at: 0, tape, stack: SmallVec::new(), keys: Vec::new() };
    reader.run()?;
    Ok(reader.tape)
}

/// Positions fit `u32` (checked once in [`tape`]); the fallback is never reached and would only refuse.
fn narrow(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Bytes of a key that are compared at once.
const PIECE: usize = 7;

/// The first bytes of what is left of a key, and in the lowest byte how many bytes are left, up to one more than there is
/// room for. So two pieces are equal when the bytes are, and both keys end there or neither.
#[inline]
fn piece(left: &[u8]) -> u64 {
    if let Some(first) = left.first_chunk() {
        return u64::from_be_bytes(*first) & !0xff | (PIECE as u64 + 1);
    }
    let mut bytes = [0; PIECE + 1];
    bytes.iter_mut().zip(left).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes) & !0xff | left.len() as u64
}

/// Whether both keys of two equal pieces end with them: then they are one key.
fn ends(piece: u64) -> bool {
    piece & 0xff <= PIECE as u64
}

impl<'t> Reader<'t> {
    #[inline]
    fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    #[cold]
    fn fault<T>(&self, kind: FaultKind) -> Step<T> {
        let ended = self.at >= self.text.len() && matches!(kind, FaultKind::Syntax | FaultKind::Number);
        let kind = if ended { FaultKind::Incomplete } else { kind };
        Err(Fault { kind, at: self.at })
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn push(&mut self, kind: Kind, start: usize, extra: u32) -> Step<u32> {
        let index = self.tape.nodes.len();
        if index >= self.limits.nodes {
            return Err(Fault { kind: FaultKind::TooMany, at: start });
        }
        let index = narrow(index);
        let end = narrow(self.at);
        self.tape.nodes.push(Node { start: narrow(start), end, next: index.saturating_add(1), extra, kind });
        Ok(index)
    }

    fn run(&mut self) -> Step {
        loop {
            self.skip_space();
            let opened = self.value()?;
            if opened {
                continue;
            }
            if self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Reads one value, or opens a container that has something in it (`true`: a value must follow).
    #[inline]
    fn value(&mut self) -> Step<bool> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string().map(|()| false),
            Some(b'{') => self.open(true),
            Some(b'[') => self.open(false),
            Some(b't') => self.word(b"true", Kind::Bool),
            Some(b'f') => self.word(b"false", Kind::Bool),
            Some(b'n') => self.word(b"null", Kind::Null),
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                self.push(Kind::Number, start, 0).map(|_| false)
            }
            _ => self.fault(FaultKind::Syntax),
        }
    }

    /// Closes what ends here; `true` when the outermost value is done, `false` when another value must follow.
    #[inline]
    fn after_value(&mut self) -> Step<bool> {
        loop {
            self.skip_space();
            let next = self.peek();
            let Some(open) = self.stack.last_mut() else {
                return if next.is_none() { Ok(true) } else { self.fault(FaultKind::Trailing) };
            };
            open.count = open.count.saturating_add(1);
            match (next, open.object) {
                (Some(b','), true) => {
                    self.at += 1;
                    self.skip_space();
                    self.key()?;
                    return Ok(false);
                }
                (Some(b','), false) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    self.at += 1;
                    self.close()?;
                }
                _ => return self.fault(FaultKind::Syntax),
            }
        }
    }

    #[inline]
    fn open(&mut self, object: bool) -> Step<bool> {
        if self.stack.len() >= self.limits.depth {
            return self.fault(FaultKind::Depth);
        }
        let node = self.push(if object { Kind::Object } else { Kind::Array }, self.at, 0)?;
        self.stack.push(Open { node, object, count: 0 });
        self.at += 1;
        self.skip_space();
        match (self.peek(), object) {
            (Some(b'}'), true) | (Some(b']'), false) => {
                self.at += 1;
                self.close()?;
                Ok(false)
            }
            (_, true) => self.key().map(|()| true),
            (_, false) => Ok(true),
        }
    }

    #[inline]
    fn key(&mut self) -> Step {
        if self.peek() != Some(b'"') {
            return self.fault(FaultKind::Syntax);
        }
        self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.fault(FaultKind::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn word(&mut self, word: &[u8], kind: Kind) -> Step<bool> {
        let start = self.at;
        let rest = self.bytes().get(start..).unwrap_or_default();
        if !rest.starts_with(word) {
            let kind = if word.starts_with(rest) { FaultKind::Incomplete } else { FaultKind::Syntax };
            return self.fault(kind);
        }
        self.at += word.len();
        self.push(kind, start, 0).map(|_| false)
    }

    #[inline]
    fn digits(&mut self) -> Step {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.fault(FaultKind::Number) } else { Ok(()) }
    }

    #[inline]
    fn number(&mut self) -> Step {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    #[inline]
    fn close(&mut self) -> Step {
        let Some(open) = self.stack.pop() else { return self.fault(FaultKind::Syntax) };
        let next = narrow(self.tape.nodes.len());
        let end = narrow(self.at);
        if let Some(node) = self.tape.nodes.get_mut(open.node as usize) {
            node.end = end;
            node.next = next;
            node.extra = open.count;
        }
        if open.object && open.count > 1 {
            self.unique_keys(open.node.saturating_add(1), next, open.count)
        } else {
            Ok(())
        }
    }

    /// Refuses an object, whose members are `tape[first..end]`, that has a key twice.
    fn unique_keys(&mut self, first: u32, end: u32, count: u32) -> Step {
        let repeated = if count as usize <= PAIRWISE {
            self.repeated_pairwise(first, end)
        } else {
            let mut keys = std::mem::take(&mut self.keys);
            keys.clear();
            keys.extend(self.key_indices(first, end).map(|index| (0, index)));
            let repeated = self.repeated_sorted(&mut keys);
            self.keys = keys;
            repeated
        };
        repeated.map_or(Ok(()), |at| Err(Fault { kind: FaultKind::DuplicateKey, at }))
    }

    fn key_indices(&self, first: u32, end: u32) -> impl Iterator<Item = u32> {
        let after = move |key: &u32| {
            let value = self.tape.nodes.get((*key as usize).saturating_add(1))?;
            Some(value.next).filter(|next| *next < end)
        };
        std::iter::successors(Some(first), after)
    }

    #[inline]
    fn key_at(&self, index: u32) -> (&[u8], usize) {
        match self.tape.nodes.get(index as usize) {
            Some(node) => (self.tape.string_bytes(self.text, node), node.start as usize),
            None => (&[], 0),
        }
    }

    fn repeated_pairwise(&self, first: u32, end: u32) -> Option<usize> {
        let mut seen = [&[][..]; PAIRWISE];
        for (n, index) in self.key_indices(first, end).enumerate() {
            let (key, at) = self.key_at(index);
            if seen
                .iter()
                .take(n)
                .any(|earlier| earlier.len() == key.len() && earlier.last() == key.last() && *earlier == key)
            {
                return Some(at);
            }
            *seen.get_mut(n)? = key;
        }
        None
    }

    /// Sorting and not hashing: keys chosen to collide cost nothing extra. By pieces, those that are alike so far by their
    /// next ones: so no byte of a key is looked at more than once, however much of them is the same.
    fn repeated_sorted(&self, keys: &mut [(u64, u32)]) -> Option<usize> {
        let mut again: Option<u32> = None;
        let mut alike: SmallVec<[(Range<usize>, usize); 4]> = SmallVec::new();
        alike.push((0..keys.len(), 0));
        while let Some((range, from)) = alike.pop() {
            let mut start = range.start;
            let group = keys.get_mut(range).unwrap_or_default();
            for (next, index) in group.iter_mut() {
                *next = piece(self.key_at(*index).0.get(from..).unwrap_or_default());
            }
            group.sort_unstable();
            for run in group.chunk_by(|(one, _), (other, _)| one == other) {
                let end = start.saturating_add(run.len());
                match run {
                    // Sorted by index too: the second is the first that repeats.
                    [(piece, _), (_, second), ..] if ends(*piece) => {
                        again = Some(again.map_or(*second, |first| first.min(*second)));
                    }
                    [_, _, ..] => alike.push((start..end, from.saturating_add(PIECE))),
                    _ => {}
                }
                start = end;
            }
        }
        again.map(|index| self.key_at(index).1)
    }

    #[inline(always)]
    fn string(&mut self) -> Step {
        let start = self.at;
        self.at += 1;
        self.plain_run();
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.push(Kind::String, start, 0).map(|_| ())
            }
            Some(b'\\') => self.escaped_string(start),
            Some(_) => self.fault(FaultKind::Control),
            None => self.fault(FaultKind::Incomplete),
        }
    }

    /// Moves to the next quote, backslash, control character, or the end.
    #[inline(always)]
    fn plain_run(&mut self) {
        let rest = self.bytes().get(self.at..).unwrap_or_default();
        self.at += plain_prefix(rest);
    }

    #[inline(never)]
    fn escaped_string(&mut self, start: usize) -> Step {
        if self.tape.unescaped.capacity() == 0 {
            // Room for what is left of a usual message: growing copies. A string is not longer decoded than as it stands.
            self.tape.unescaped.reserve(self.text.len().saturating_sub(start).min(ROOM));
        }
        let mut run = start + 1;
        loop {
            let plain = self.text.get(run..self.at).unwrap_or_default();
            self.tape.unescaped.push_str(plain);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let decoded = self.escape()?;
                    self.tape.unescaped.push(decoded);
                }
                Some(_) => return self.fault(FaultKind::Control),
                None => return self.fault(FaultKind::Incomplete),
            }
            run = self.at;
            self.plain_run();
        }
        self.at += 1;
        self.tape.unescaped_ends.push(narrow(self.tape.unescaped.len()));
        let extra = narrow(self.tape.unescaped_ends.len());
        self.push(Kind::String, start, extra).map(|_| ())
    }

    fn escape(&mut self) -> Step<char> {
        let start = self.at;
        let code = self.bytes().get(start + 1).copied();
        self.at += 2;
        Ok(match code {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            Some(_) => return Err(Fault { kind: FaultKind::Escape, at: start }),
            None => return Err(Fault { kind: FaultKind::Incomplete, at: start }),
        })
    }

    /// The four digits behind `\u`, and for a high surrogate the `\u` and four digits behind those.
    fn unicode_escape(&mut self, start: usize) -> Step<char> {
        let half = |kind| Err(Fault { kind, at: start });
        let first = self.hex4()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).map_or_else(|| half(FaultKind::Surrogate), Ok);
        }
        if !self.bytes().get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u")) {
            return half(FaultKind::Surrogate);
        }
        self.at += 2;
        let second = self.hex4()?;
        if !(0xDC00..0xE000).contains(&second) {
            return half(FaultKind::Surrogate);
        }
        let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        char::from_u32(scalar).map_or_else(|| half(FaultKind::Surrogate), Ok)
    }

    fn hex4(&mut self) -> Step<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else { return self.fault(FaultKind::Incomplete) };
            let Some(digit) = char::from(byte).to_digit(16) else { return self.fault(FaultKind::Escape) };
            value = value << 4 | digit;
            self.at += 1;
        }
        Ok(value)
    }
}
