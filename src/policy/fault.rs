//! What is wrong with a policy, its prices or its scopes: a path into the file and a text. The room knows no files and
//! no lines; whoever read the file turns a path into one.

use std::fmt;

/// One step of a path into a configuration document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A key of a mapping, as it was written.
    Key(String),
    /// An item of a list, counted from 0.
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Which part of the configuration a [`Fault::path`] starts in; the parts may stand in different files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The policy document; the path starts at its root (`roles`, `rules`, `permissions`).
    Policy,
    /// The record's `capabilities` mapping; the path starts with a label as written there.
    Capabilities,
    /// The server's `capability_scopes` mapping; the path starts with a label as written there.
    CapabilityScopes,
    /// The list of scopes that every call of the server needs; the path is an index, or empty for the list itself.
    RequiredScopes,
    /// The `implies` mapping from a broader scope to narrower ones; the path starts with a scope.
    Implies,
}

/// One thing that is wrong: where, and what to do about it. Also used for warnings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{}: {message}", Path(&self.path))]
pub struct Fault {
    /// The part of the configuration that [`Fault::path`] starts in.
    pub part: Part,
    /// The steps from the root of the part; empty for the part as a whole.
    pub path: Vec<Segment>,
    /// What was expected, what came, how to fix it; no full stop at the end.
    pub message: String,
}

impl Fault {
    /// A fault at `path` of `part`.
    pub(crate) fn new(part: Part, path: impl IntoIterator<Item = Segment>, message: impl Into<String>) -> Self {
        Self { part, path: path.into_iter().collect(), message: message.into() }
    }
}

/// Writes a path as `rules[2].match.claim.groups`.
struct Path<'a>(&'a [Segment]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if at == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Writes names as a list for a person: `a, b, c`, or `none` for an empty one.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
