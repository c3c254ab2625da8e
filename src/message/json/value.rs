//! Looking at what was read: a copyable view of one value on the tape.

use std::ops::Range;

use super::{Document, Kind, Node, Tape};

/// One value of a [`Document`]. Cheap to copy; borrows the document.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    document: &'a Document,
    at: u32,
}

impl<'a> Value<'a> {
    pub(super) fn new(document: &'a Document, at: u32) -> Self {
        Self { document, at }
    }

    fn node(&self) -> Option<&'a Node> {
        self.document.tape.nodes.get(self.at as usize)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.node().map_or(Kind::Null, |node| node.kind)
    }

    /// Its byte range in [`Document::text`], quotes and brackets included.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.node().map_or(0..0, |node| node.start as usize..node.end as usize)
    }

    /// Its bytes as they stand, quotes and brackets included.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.document.text.get(self.span()).unwrap_or_default()
    }

    /// The document it belongs to.
    #[must_use]
    pub fn document(&self) -> &'a Document {
        self.document
    }

    /// The decoded text of a string or key; `None` for everything else.
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        let node = self.node().filter(|node| node.kind == Kind::String)?;
        Some(self.document.tape.string(&self.document.text, node))
    }

    /// The value of `true` and `false`; `None` for everything else.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The text of a number exactly as it was written; `None` for everything else.
    #[must_use]
    pub fn as_number(&self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// How many items or members a container has; 0 for everything else.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.node() {
            Some(node) if matches!(node.kind, Kind::Array | Kind::Object) => node.extra as usize,
            _ => 0,
        }
    }

    /// Whether [`Value::len`] is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The member of an object under `key` (compared after unescaping); `None` when absent or not an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.entries().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// The value that `keys` lead to, one object inside the other; the value itself for no keys.
    #[must_use]
    pub fn path(&self, keys: &[&str]) -> Option<Value<'a>> {
        keys.iter().try_fold(*self, |value, key| value.get(key))
    }

    /// The members of an object as (key, value) in written order; empty for everything else.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries { values: self.children(Kind::Object) }
    }

    /// The items of an array in order; empty for everything else.
    #[must_use]
    pub fn items(&self) -> Items<'a> {
        self.children(Kind::Array)
    }

    /// Every string and key in it at any depth, itself included, decoded, in written order.
    pub fn strings(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let document = self.document;
        let range = self.at as usize..self.node().map_or(0, |node| node.next as usize);
        let nodes = document.tape.nodes.get(range).unwrap_or_default();
        let strings = nodes.iter().filter(|node| node.kind == Kind::String);
        strings.map(|node| document.tape.string(&document.text, node))
    }

    fn children(&self, kind: Kind) -> Items<'a> {
        match self.node() {
            Some(node) if node.kind == kind => {
                Items { document: self.document, at: self.at.saturating_add(1), end: node.next }
            }
            _ => Items { document: self.document, at: 0, end: 0 },
        }
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.raw())
    }
}

impl Tape {
    /// The decoded text of a string node of `text`.
    pub(super) fn string<'a>(&'a self, text: &'a str, node: &Node) -> &'a str {
        match self.unescaped_string(node) {
            Some(unescaped) => unescaped,
            None => text.get(node.inside()).unwrap_or_default(),
        }
    }

    /// The bytes of [`Tape::string`], without the cost of looking for character boundaries.
    #[inline]
    pub(super) fn string_bytes<'a>(&'a self, text: &'a str, node: &Node) -> &'a [u8] {
        match self.unescaped_string(node) {
            Some(unescaped) => unescaped.as_bytes(),
            None => text.as_bytes().get(node.inside()).unwrap_or_default(),
        }
    }

    /// `None` for a string without escapes, which stands in the text as it is.
    #[inline]
    fn unescaped_string(&self, node: &Node) -> Option<&str> {
        let index = (node.extra as usize).checked_sub(1)?;
        let end_of = |index: usize| self.unescaped_ends.get(index).map_or(0, |end| *end as usize);
        let range = index.checked_sub(1).map_or(0, end_of)..end_of(index);
        Some(self.unescaped.get(range).unwrap_or_default())
    }
}

impl Node {
    /// Between the quotes.
    #[inline]
    fn inside(&self) -> Range<usize> {
        (self.start as usize).saturating_add(1)..(self.end as usize).saturating_sub(1)
    }
}

/// Iterator over the items of an array.
#[derive(Clone)]
pub struct Items<'a> {
    document: &'a Document,
    at: u32,
    end: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value::new(self.document, self.at);
        self.at = value.node()?.next;
        Some(value)
    }
}

/// Iterator over the members of an object.
#[derive(Clone)]
pub struct Entries<'a> {
    values: Items<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.values.next()?, self.values.next()?))
    }
}
