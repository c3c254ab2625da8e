//! Looking at what was read: a copyable view of one value on the tape.

use std::ops::Range;

use super::{Document, Kind, Node};

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
        self.document.nodes.get(self.at as usize)
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
        Some(self.document.string(node))
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

impl Document {
    /// The decoded text of a string node.
    pub(super) fn string(&self, node: &Node) -> &str {
        let Some(index) = (node.extra as usize).checked_sub(1) else {
            let inside = (node.start as usize).saturating_add(1)..(node.end as usize).saturating_sub(1);
            return self.text.get(inside).unwrap_or_default();
        };
        let start =
            index.checked_sub(1).and_then(|before| self.unescaped_ends.get(before)).map_or(0, |end| *end as usize);
        let end = self.unescaped_ends.get(index).map_or(0, |end| *end as usize);
        self.unescaped.get(start..end).unwrap_or_default()
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
