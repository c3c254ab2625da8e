//! From parser events to nodes.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use super::{Content, Entry, MAX_DEPTH, MAX_NODES, Mapping, Node, Place, PlacedFault};

/// Reads `text` as one YAML document.
pub(super) fn parse(text: &str) -> (Option<Node>, Vec<PlacedFault>) {
    let mut builder = Builder::default();
    for next in Parser::new_from_str(text) {
        let step = match next {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => fault(place(error.marker()), &format!("expected YAML, but {}", error.info())),
        };
        if let Err(fault) = step {
            builder.faults.push(fault);
            return (None, builder.faults);
        }
    }
    let mut root = builder.root.unwrap_or_else(|| scalar(Place { line: 1, column: 1 }, String::new(), true));
    number(&mut root, String::new(), &mut 0);
    (Some(root), builder.faults)
}

fn place(marker: &Marker) -> Place {
    Place { line: marker.line().max(1), column: marker.col() + 1 }
}

fn scalar(place: Place, text: String, plain: bool) -> Node {
    Node { id: 0, place, path: String::new(), damaged: false, content: Content::Scalar { text, plain } }
}

/// A container that is still open.
struct Open {
    place: Place,
    anchor: usize,
    content: Content,
    /// In a mapping: the key that waits for its value.
    key: Option<(String, Place)>,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
    faults: Vec<PlacedFault>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), PlacedFault> {
        let at = place(&span.tag_start().unwrap_or(span.start));
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                fault(at, "expected one YAML document, found a second one; put it into a file of its own")
            }
            Event::Scalar(text, style, anchor, tag) => {
                untagged(at, tag.as_deref())?;
                let plain = style == ScalarStyle::Plain;
                // The parser writes `~` for a value that is not there.
                let text = if plain && span.is_empty() { String::new() } else { text.into_owned() };
                let node = scalar(at, text, plain);
                self.value(node, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                untagged(at, tag.as_deref())?;
                self.start(at, anchor, Content::Sequence(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                untagged(at, tag.as_deref())?;
                self.start(at, anchor, Content::Mapping(Mapping::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { place, anchor, content, .. }) = self.open.pop() else { return Ok(()) };
                self.value(Node { id: 0, place, path: String::new(), damaged: false, content }, anchor)
            }
            Event::Alias(anchor) => self.alias(at, anchor),
            _ => Ok(()),
        }
    }

    fn start(&mut self, place: Place, anchor: usize, content: Content) -> Result<(), PlacedFault> {
        if self.open.len() >= MAX_DEPTH {
            return fault(place, &format!("expected at most {MAX_DEPTH} levels of nesting; flatten this value"));
        }
        self.open.push(Open { place, anchor, content, key: None });
        Ok(())
    }

    /// An alias is the anchored value once more; it keeps the place where it was written out, which is what to change.
    fn alias(&mut self, at: Place, anchor: usize) -> Result<(), PlacedFault> {
        let Some(node) = self.anchors.get(&anchor) else {
            return fault(at, "expected an alias of a value that ends before it, found one inside its own anchor");
        };
        let (nodes, depth) = size(node);
        self.nodes += nodes;
        if self.nodes > MAX_NODES || self.open.len() + depth > MAX_DEPTH {
            let limits = format!("at most {MAX_NODES} values and {MAX_DEPTH} levels of nesting");
            return fault(at, &format!("expected {limits}, aliases written out; use fewer aliases"));
        }
        self.value(node.clone(), 0)
    }

    /// A finished value goes into the container that is open, as item, key or entry.
    fn value(&mut self, mut node: Node, anchor: usize) -> Result<(), PlacedFault> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return fault(node.place, &format!("expected at most {MAX_NODES} values; split the file"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.content {
            Content::Scalar { .. } => {}
            Content::Sequence(items) => items.push(node),
            Content::Mapping(mapping) => match open.key.take() {
                None => open.key = Some(key(node)?),
                Some((key, place)) => {
                    // A value that is not there has no place of its own that a reader would look at.
                    if matches!(&node.content, Content::Scalar { text, plain: true } if text.is_empty()) {
                        node.place = place;
                    }
                    match mapping.entries.iter().find(|entry| entry.key == key) {
                        Some(first) => self.faults.push(PlacedFault {
                            place,
                            path: String::new(),
                            message: format!(
                                "expected each key once, found `{key}` again (first on line {}); remove one of the two",
                                first.place.line
                            ),
                        }),
                        None => mapping.entries.push(Entry { key, place, node }),
                    }
                }
            },
        }
        Ok(())
    }
}

fn key(node: Node) -> Result<(String, Place), PlacedFault> {
    match node.content {
        Content::Scalar { text, .. } => Ok((text, node.place)),
        _ => fault(node.place, "expected a plain key, found a list or mapping in its place"),
    }
}

fn untagged(at: Place, tag: Option<&Tag>) -> Result<(), PlacedFault> {
    match tag {
        None => Ok(()),
        Some(tag) => {
            fault(at, &format!("expected a value without a YAML tag, found `{}`; remove the tag", tag.original()))
        }
    }
}

fn fault<T>(place: Place, message: &str) -> Result<T, PlacedFault> {
    Err(PlacedFault { place, path: String::new(), message: message.to_owned() })
}

/// Nodes and levels of a value, itself included (a scalar has no level).
fn size(node: &Node) -> (usize, usize) {
    let below: Vec<(usize, usize)> = match &node.content {
        Content::Scalar { .. } => return (1, 0),
        Content::Sequence(items) => items.iter().map(size).collect(),
        Content::Mapping(mapping) => mapping.entries.iter().map(|entry| size(&entry.node)).collect(),
    };
    (
        1 + below.iter().map(|(nodes, _)| nodes).sum::<usize>(),
        1 + below.iter().map(|(_, depth)| *depth).max().unwrap_or(0),
    )
}

/// Gives every node its id and its path, parents first.
fn number(node: &mut Node, path: String, next: &mut usize) {
    node.id = *next;
    *next += 1;
    match &mut node.content {
        Content::Scalar { .. } => {}
        Content::Sequence(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                number(item, format!("{path}[{index}]"), next);
            }
        }
        Content::Mapping(mapping) => {
            for entry in &mut mapping.entries {
                number(&mut entry.node, below(&path, &entry.key), next);
            }
        }
    }
    node.path = path;
}

/// `path.key`, the key in brackets where a dot in it would mislead.
fn below(path: &str, key: &str) -> String {
    let simple = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-:".contains(c));
    match (path.is_empty(), simple) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[\"{key}\"]"),
    }
}
