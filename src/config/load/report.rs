//! Collects what is to be told, with its places.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::config::located::Located;
use crate::config::tree::{Node, Place, PlacedFault};

/// Faults and warnings so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Two servers that share a file share its faults.
    faults: BTreeSet<Located>,
    warnings: BTreeSet<Located>,
    /// Warnings that hold only when everyone who uses the file has them, with the number of those who do.
    agreed: BTreeMap<Located, usize>,
    /// How many use a file.
    users: BTreeMap<PathBuf, usize>,
    files: BTreeSet<PathBuf>,
}

impl Report {
    /// A fault at a node, led in by the node's path.
    pub(super) fn fault(&mut self, file: &Path, node: &Node, message: &str) {
        self.faults.insert(located(file, node, message));
    }

    /// A required key that a mapping lacks, unless it was there and faulty, which was told.
    pub(super) fn missing(&mut self, file: &Path, node: &Node, key: &str) {
        if !node.dropped(|dropped| dropped == key) {
            self.fault(file, node, &format!("expected the key `{key}`, which is missing here; add it"));
        }
    }

    /// A fault at a place.
    pub(super) fn fault_at(&mut self, file: &Path, place: Place, message: String) {
        self.faults.insert(Located { file: file.to_owned(), line: place.line, column: place.column, message });
    }

    /// Faults that have their place.
    pub(super) fn placed(&mut self, file: &Path, faults: Vec<PlacedFault>) {
        for PlacedFault { place, path, message } in faults {
            self.fault_at(file, place, led_in(&path, &message));
        }
    }

    /// A warning at a node, led in by the node's path.
    pub(super) fn warning(&mut self, file: &Path, node: &Node, message: &str) {
        self.warnings.insert(located(file, node, message));
    }

    /// A warning at a place.
    pub(super) fn warning_at(&mut self, file: &Path, place: Place, message: String) {
        self.warnings.insert(Located { file: file.to_owned(), line: place.line, column: place.column, message });
    }

    /// Someone uses the policy in `file`; counted for [`Report::agree`].
    pub(super) fn uses(&mut self, file: &Path) {
        *self.users.entry(file.to_owned()).or_default() += 1;
    }

    /// A warning of one user of `file` that is told when all its users have it: a permission that nothing costs *here* may
    /// be what another server's tools cost.
    pub(super) fn agree(&mut self, file: &Path, node: &Node, message: &str) {
        *self.agreed.entry(located(file, node, message)).or_default() += 1;
    }

    /// A file that was read or named.
    pub(super) fn file(&mut self, file: &Path) {
        self.files.insert(file.to_owned());
    }

    /// Whether there is no fault so far.
    pub(super) fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Faults, warnings and files, each sorted.
    pub(super) fn finish(mut self) -> (Vec<Located>, Vec<Located>, Vec<PathBuf>) {
        for (warning, times) in self.agreed {
            if self.users.get(&warning.file).is_none_or(|users| times >= *users) {
                self.warnings.insert(warning);
            }
        }
        (self.faults.into_iter().collect(), self.warnings.into_iter().collect(), self.files.into_iter().collect())
    }
}

fn located(file: &Path, node: &Node, message: &str) -> Located {
    let message = led_in(&node.path, message);
    Located { file: file.to_owned(), line: node.place.line, column: node.place.column, message }
}

fn led_in(path: &str, message: &str) -> String {
    if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
}
