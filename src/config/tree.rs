//! YAML into a located tree: every node knows its line, its column and its path.
//!
//! A serde deserializer that runs straight over YAML stops at the first fault and forgets where things stood. This tree
//! stays: [`super::deserialize`] can try again without the node that was wrong, and a check that spans two files can
//! still say which line to change. Strict where two readers could disagree: no key twice, no tags, one document.

mod build;

#[cfg(test)]
mod tests;

use crate::policy::Segment;

/// Most levels of nesting, aliases written out.
const MAX_DEPTH: usize = 64;
/// Most nodes, aliases written out. A record of two thousand capabilities takes about ten thousand.
const MAX_NODES: usize = 200_000;

/// Where something stands in its file. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Something wrong at a place of one file; the file's name is added by whoever read the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedFault {
    pub(crate) place: Place,
    /// [`Node::path`] of what is wrong; empty for the document as a whole.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// One YAML value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Unique within the tree.
    pub(crate) id: usize,
    pub(crate) place: Place,
    /// Keys and indices from the root as a reader writes them: `servers[0].limits.request`.
    pub(crate) path: String,
    /// Whether something below was taken out because it was wrong: what is missing may then have been there.
    pub(crate) damaged: bool,
    pub(crate) content: Content,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// `plain` is a scalar without quotes, whose type its text decides; every other scalar is a string.
    Scalar {
        text: String,
        plain: bool,
    },
    Sequence(Vec<Node>),
    Mapping(Mapping),
}

/// The entries of a mapping in written order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) entries: Vec<Entry>,
    /// Keys whose entries were taken out because they were wrong: they are not "missing".
    pub(crate) dropped: Vec<String>,
}

/// One entry of a [`Mapping`].
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Node {
    /// Reads one YAML document.
    ///
    /// A repeated key is a fault that leaves the first entry in place; a syntax fault leaves no tree at all.
    pub(crate) fn parse(text: &str) -> (Option<Self>, Vec<PlacedFault>) {
        build::parse(text)
    }

    /// The entry of a mapping under `key`.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        let Content::Mapping(mapping) = &self.content else { return None };
        mapping.entries.iter().find(|entry| entry.key == key)
    }

    /// The value of a mapping under `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The items of a sequence; empty for everything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; empty for everything else.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Mapping(mapping) => &mapping.entries,
            _ => &[],
        }
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The node that `steps` lead to, or the deepest one on the way that exists.
    pub(crate) fn locate<'a>(&self, steps: impl IntoIterator<Item = &'a Segment>) -> &Node {
        let mut node = self;
        for step in steps {
            let below = match step {
                Segment::Key(key) => node.get(key),
                Segment::Index(index) => node.items().get(*index),
            };
            match below {
                Some(below) => node = below,
                None => break,
            }
        }
        node
    }

    /// The node with this id, if it is here or below.
    pub(crate) fn find(&self, id: usize) -> Option<&Node> {
        if self.id == id {
            return Some(self);
        }
        match &self.content {
            Content::Scalar { .. } => None,
            Content::Sequence(items) => items.iter().find_map(|item| item.find(id)),
            Content::Mapping(mapping) => mapping.entries.iter().find_map(|entry| entry.node.find(id)),
        }
    }

    /// Where the key of the node with this id stands, if it has one.
    pub(crate) fn key_of(&self, id: usize) -> Option<Place> {
        match &self.content {
            Content::Scalar { .. } => None,
            Content::Sequence(items) => items.iter().find_map(|item| item.key_of(id)),
            Content::Mapping(mapping) => mapping
                .entries
                .iter()
                .find_map(|entry| if entry.node.id == id { Some(entry.place) } else { entry.node.key_of(id) }),
        }
    }

    /// Takes the node with this id out of what stands below this one; false when it is not there.
    pub(crate) fn remove(&mut self, id: usize) -> bool {
        let removed = self.content.remove(id);
        self.damaged |= removed;
        removed
    }

    /// Whether an entry whose key is `meant` was taken out of the mapping that this node is.
    pub(crate) fn dropped(&self, meant: impl Fn(&str) -> bool) -> bool {
        matches!(&self.content, Content::Mapping(mapping) if mapping.dropped.iter().any(|key| meant(key)))
    }
}

impl Content {
    fn remove(&mut self, id: usize) -> bool {
        match self {
            Self::Scalar { .. } => false,
            Self::Sequence(items) => {
                let before = items.len();
                items.retain(|item| item.id != id);
                before != items.len() || items.iter_mut().any(|item| item.remove(id))
            }
            Self::Mapping(mapping) => match mapping.entries.iter().position(|entry| entry.node.id == id) {
                Some(index) => {
                    mapping.dropped.push(mapping.entries.remove(index).key);
                    true
                }
                None => mapping.entries.iter_mut().any(|entry| entry.node.remove(id)),
            },
        }
    }
}
