//! The strict JSON reader: one pass over the bytes into a flat tape of nodes that keep their byte ranges.
//!
//! Strict means RFC 8259 and then some, because two readers that disagree about a message are how authorization is
//! bypassed: UTF-8 only, one value and nothing behind it, no key twice in an object (compared after unescaping), no
//! lone surrogate, bounded depth and node count. Numbers are kept as the text the caller wrote.
//!
//! The tape is flat and the reader iterative: no recursion, so hostile nesting costs a counter and not a stack.

mod read;
pub(super) mod scan;
mod value;

#[cfg(test)]
mod tests;

pub use value::{Entries, Items, Value};

/// What a document may at most contain. Both bounds refuse; neither truncates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Containers inside each other, the outermost counted as 1.
    pub depth: usize,
    /// Values and keys in total.
    pub nodes: usize,
}

/// Why bytes are not an acceptable JSON document, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Offset of the first byte that shows it.
    pub at: usize,
}

/// The kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// Not UTF-8.
    #[error("expected UTF-8 text")]
    Utf8,
    /// The text ended inside a value.
    #[error("the text ended inside a value")]
    Incomplete,
    /// A byte that no JSON value has there.
    #[error("expected a JSON value, key or separator")]
    Syntax,
    /// A number outside RFC 8259 §6.
    #[error("expected a JSON number")]
    Number,
    /// A control character inside a string.
    #[error("expected an escape for a control character")]
    Control,
    /// An escape outside RFC 8259 §7.
    #[error("expected a JSON escape")]
    Escape,
    /// Half a surrogate pair.
    #[error("expected a whole surrogate pair")]
    Surrogate,
    /// Something behind the value.
    #[error("expected nothing after the value")]
    Trailing,
    /// More nesting than [`Limits::depth`].
    #[error("nested too deep")]
    Depth,
    /// A key that the object already has.
    #[error("a key is repeated")]
    DuplicateKey,
    /// More values than [`Limits::nodes`], or more than 4 GiB of text.
    #[error("too many values")]
    TooMany,
}

/// What a node of the tape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// Any number, kept as text.
    Number,
    /// A string or a key.
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// A value on the tape: where it stands and where its next sibling does.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// First byte.
    start: u32,
    /// One past the last byte.
    end: u32,
    /// Tape index of whatever follows this value and everything in it.
    next: u32,
    /// Containers: number of items or members. Strings: 0, or 1 + index into `Tape::unescaped_ends`.
    extra: u32,
    kind: Kind,
}

/// One JSON document that was read whole: its text and its tape.
#[derive(Debug)]
pub struct Document {
    text: String,
    tape: Tape,
}

/// What was read: every value in reading order, a container before what it holds, a key before its value.
#[derive(Debug)]
struct Tape {
    nodes: Vec<Node>,
    /// Decoded forms of the strings that contain escapes, one after the other.
    unescaped: String,
    unescaped_ends: Vec<u32>,
}

impl Document {
    /// Reads one document out of `bytes`, which become the document's text without a copy.
    ///
    /// # Errors
    /// The first fault in reading order; duplicate keys are found when their object closes.
    pub fn read(bytes: Vec<u8>, limits: Limits) -> Result<Self, Fault> {
        let text = String::from_utf8(bytes)
            .map_err(|error| Fault { kind: FaultKind::Utf8, at: error.utf8_error().valid_up_to() })?;
        let tape = read::tape(&text, limits)?;
        Ok(Self { text, tape })
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value::new(self, 0)
    }

    /// The text exactly as it came.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The decoded forms of all strings and keys that contain escapes, one after the other without anything between.
    #[must_use]
    pub fn unescaped(&self) -> &str {
        &self.tape.unescaped
    }

    /// Parts of [`Document::text`] in which every string without escapes stands whole. Where strings with escapes are long, the
    /// parts leave them out, for [`Document::unescaped`] has them; where they are short, the one part is the whole text.
    pub fn beside_unescaped(&self) -> impl Iterator<Item = &str> {
        // Each part costs as much as a few hundred bytes.
        let long = self.tape.unescaped_ends.len().saturating_mul(256) < self.tape.unescaped.len();
        let nodes = if long { self.tape.nodes.as_slice() } else { &[] };
        let escaped = nodes.iter().filter(|node| node.kind == Kind::String && node.extra > 0);
        let ends = escaped.map(|node| (node.start as usize, node.end as usize));
        let all = self.text.len();
        let mut from = 0;
        ends.chain([(all, all)]).filter_map(move |(start, end)| {
            let part = self.text.get(from..start);
            from = end;
            part
        })
    }

    /// Gives the bytes back, unchanged.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}
