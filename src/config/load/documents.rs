//! The files that `portcullis.yaml` names: each is read once, however many servers name it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::report::Report;
use crate::config::deserialize;
use crate::config::tree::{Node, Place};
use crate::policy::{Policy, PolicySource};
use crate::record::{Definitions, RecordSource};

/// Longer files are mistakes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What was read, by path.
#[derive(Default)]
pub(super) struct Documents {
    policies: HashMap<PathBuf, PolicyDocument>,
    records: HashMap<PathBuf, RecordDocument>,
}

/// A policy and the tree it was made of.
pub(super) struct PolicyDocument {
    pub(super) root: Node,
    pub(super) policy: Arc<Policy>,
}

/// A record's two files.
pub(super) struct RecordDocument {
    pub(super) root: Node,
    pub(super) source: RecordSource,
    pub(super) definitions: DefinitionsDocument,
}

impl RecordDocument {
    /// Whether no entry had to be left out: what is missing is then really missing.
    pub(super) fn is_whole(&self) -> bool {
        !self.root.damaged
    }
}

/// The record's JSON file.
pub(super) struct DefinitionsDocument {
    pub(super) path: PathBuf,
    pub(super) lines: Lines,
    pub(super) definitions: Definitions,
}

impl Documents {
    /// Reads what the entries of `servers` name, straight from the tree: an entry may be faulty itself.
    pub(super) fn read(root: &Node, base: &Path, report: &mut Report) -> Self {
        let mut documents = Self::default();
        for server in root.get("servers").map_or(&[][..], Node::items) {
            let named = |key: &str| server.get(key)?.get("file")?.text().map(|file| base.join(file));
            if let Some(path) = named("policy").filter(|path| !documents.policies.contains_key(path)) {
                documents.policies.extend(policy(&path, report).map(|document| (path, document)));
            }
            if let Some(path) = named("record").filter(|path| !documents.records.contains_key(path)) {
                documents.records.extend(record(&path, report).map(|document| (path, document)));
            }
        }
        documents
    }

    /// The policy in a file; `None` when the file is faulty, which was told.
    pub(super) fn policy(&self, path: &Path) -> Option<&PolicyDocument> {
        self.policies.get(path)
    }

    /// The record in a file; `None` when one of its two files is faulty, which was told.
    pub(super) fn record(&self, path: &Path) -> Option<&RecordDocument> {
        self.records.get(path)
    }
}

fn policy(path: &Path, report: &mut Report) -> Option<PolicyDocument> {
    let mut root = tree(path, report)?;
    let (source, faults) = deserialize::load::<PolicySource>(&mut root);
    report.placed(path, faults);
    let policy = compile_policy(&source?, path, &root, report)?;
    Some(PolicyDocument { root, policy: Arc::new(policy) })
}

/// Compiles a policy whose document is `root`, in whichever file that stands. Without a role that could not be read every
/// rule and price that needs it would look wrong, so then there is none.
pub(super) fn compile_policy(source: &PolicySource, path: &Path, root: &Node, report: &mut Report) -> Option<Policy> {
    if ["roles", "permissions"].iter().any(|key| root.get(key).is_some_and(|node| node.damaged)) {
        return None;
    }
    match Policy::compile(source) {
        Ok(policy) => Some(policy),
        Err(faults) => {
            for fault in faults {
                let node = root.locate(&fault.path);
                // A rule of which a part could not be read says nothing wrong by lacking it.
                if !node.damaged {
                    report.fault(path, node, &fault.message);
                }
            }
            None
        }
    }
}

fn record(path: &Path, report: &mut Report) -> Option<RecordDocument> {
    let mut root = tree(path, report)?;
    // The definitions are read even where the rest is faulty.
    let named = root.get("definitions").and_then(Node::text).filter(|file| !file.is_empty());
    let definitions = named.and_then(|file| definitions(&path.parent().unwrap_or(Path::new("")).join(file), report));
    let (source, faults) = deserialize::load::<RecordSource>(&mut root);
    report.placed(path, faults);
    Some(RecordDocument { root, source: source?, definitions: definitions? })
}

fn definitions(path: &Path, report: &mut Report) -> Option<DefinitionsDocument> {
    let bytes = bytes(path, report)?;
    let lines = Lines::of(&bytes);
    match Definitions::read(bytes) {
        Ok(definitions) => Some(DefinitionsDocument { path: path.to_owned(), lines, definitions }),
        Err(faults) => {
            for fault in faults {
                report.fault_at(path, lines.place(fault.at), fault.message);
            }
            None
        }
    }
}

/// The YAML tree of a file; `None` when it cannot be had at all, which was told.
pub(super) fn tree(path: &Path, report: &mut Report) -> Option<Node> {
    let bytes = bytes(path, report)?;
    let lines = Lines::of(&bytes);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = lines.place(error.utf8_error().valid_up_to());
            report.fault_at(path, at, "expected UTF-8 text; save the file as UTF-8".to_owned());
            return None;
        }
    };
    let (root, faults) = Node::parse(&text);
    report.placed(path, faults);
    root
}

/// The bytes of a file; `None` when they cannot be had, which was told.
pub(super) fn bytes(path: &Path, report: &mut Report) -> Option<Vec<u8>> {
    report.file(path);
    let read = std::fs::metadata(path).and_then(|found| match found.len() {
        0..=MAX_BYTES => std::fs::read(path),
        length => Err(std::io::Error::other(format!("it has {length} bytes, more than {MAX_BYTES}"))),
    });
    match read {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            let message = format!(
                "expected a file that can be read, but {error}; check that it exists and may be read by this user"
            );
            report.fault_at(path, Place { line: 1, column: 1 }, message);
            None
        }
    }
}

/// Where the lines of a file begin.
pub(super) struct Lines {
    starts: Vec<usize>,
    /// Offsets of bytes that continue a character, so that columns count characters.
    continuations: Vec<usize>,
}

impl Lines {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let (mut starts, mut continuations) = (vec![0], Vec::new());
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' => starts.push(at + 1),
                0x80..=0xBF => continuations.push(at),
                _ => {}
            }
        }
        Self { starts, continuations }
    }

    /// The place of a byte.
    pub(super) fn place(&self, at: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        let before = |offset: usize| self.continuations.partition_point(|at| *at < offset);
        Place { line, column: at - start + 1 - (before(at) - before(start)) }
    }
}
