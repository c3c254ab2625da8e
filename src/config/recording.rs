//! What `portcullis record` reads of the configuration and of a record that is there already.
//!
//! The configuration need not load: on a first recording there is no record yet, and one whose prices are still `TODO`
//! never loads. So only what a listing needs is asked for, and a record is read as far as it goes.

mod edit;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::deserialize;
use super::load::{Recording, recording as compile};
use super::located::Located;
use super::model::Configuration;
use super::tree::{Node, Place};
use crate::policy::Label;
use crate::record::{Approved, Definitions};

pub use edit::{Offered, Plan, first};

/// What to list and where its record lies, by the configuration at `path`. `server` may be left out where there is one.
///
/// # Errors
/// What keeps this server from being listed; faults elsewhere are none here.
pub fn recording(path: &Path, server: Option<&str>) -> Result<Recording, Vec<Located>> {
    let text = read(path)?;
    let (root, faults) = Node::parse(&text);
    let located = |faults: Vec<super::tree::PlacedFault>| -> Vec<Located> {
        faults.into_iter().map(|fault| at(path, fault.place, &fault.path, &fault.message)).collect()
    };
    let Some(mut root) = root else { return Err(located(faults)) };
    let (configuration, faults) = deserialize::load::<Configuration>(&mut root);
    let Some(configuration) = configuration else { return Err(located(faults)) };
    let named =
        |index: &usize| configuration.servers.get(*index).is_some_and(|own| server.is_none_or(|name| own.name == name));
    let candidates: Vec<usize> = (0..configuration.servers.len()).filter(named).collect();
    let [index] = candidates[..] else {
        let all: Vec<&str> = configuration.servers.iter().map(|server| server.name.as_str()).collect();
        let wanted = server.map_or_else(|| "one server".to_owned(), |name| format!("a server `{name}`"));
        let message = format!("expected {wanted}, found {}; name one with --server", list(&all));
        return Err(vec![at(path, root.locate(&["servers".into()]).place, "servers", &message)]);
    };
    let own = |fault: &super::tree::PlacedFault| {
        ["upstream", "record", "name"].iter().any(|key| fault.path.starts_with(&format!("servers[{index}].{key}")))
    };
    let faults: Vec<_> = faults.into_iter().filter(own).collect();
    if !faults.is_empty() {
        return Err(located(faults));
    }
    compile(path, &root, &configuration, index)
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
}

/// A record as it lies on disk.
#[derive(Debug)]
pub struct Existing {
    /// Its YAML file.
    pub file: PathBuf,
    /// The YAML file's text.
    pub text: String,
    root: Node,
    /// Its JSON file.
    pub definitions_file: PathBuf,
    /// What both say.
    pub approved: Approved,
}

impl Existing {
    /// Reads a record; `None` when there is no YAML file yet.
    ///
    /// # Errors
    /// One of the files cannot be read or understood. A price that is still `TODO` is none.
    pub fn read(file: &Path) -> Result<Option<Self>, Vec<Located>> {
        if !file.exists() {
            return Ok(None);
        }
        let text = read(file)?;
        let (root, faults) = Node::parse(&text);
        if !faults.is_empty() {
            return Err(faults.iter().map(|fault| at(file, fault.place, &fault.path, &fault.message)).collect());
        }
        let one = |node: &Node, message: &str| vec![at(file, node.place, &node.path, message)];
        let Some(root) = root else { return Err(vec![at(file, START, "", "expected a record, found nothing")]) };
        let Some(name) = root.get("definitions").and_then(Node::text).filter(|name| !name.is_empty()) else {
            return Err(one(&root, "expected the key `definitions` with the name of the JSON file; add it"));
        };
        let definitions_file = file.parent().unwrap_or(Path::new("")).join(name);
        let prices = prices(&root).map_err(|(node, message)| one(node, &message))?;
        let approved = approved(&definitions_file, prices)?;
        Ok(Some(Self { file: file.to_owned(), text, root, definitions_file, approved }))
    }

    /// The YAML text after a recording: digests and URIs as they are now, new capabilities at the end with a price to be
    /// decided, what is gone as comments. Prices, comments and order stay.
    ///
    /// # Errors
    /// The place that cannot be edited in place without losing something.
    pub fn edited(&self, plan: &Plan<'_>) -> Result<String, Located> {
        edit::edited(&self.text, &self.root, plan)
            .map_err(|fault| at(&self.file, fault.place, &fault.path, &fault.message))
    }
}

const START: Place = Place { line: 1, column: 1 };

/// The price of each capability; `None` for one that nobody decided.
fn prices(root: &Node) -> Result<BTreeMap<Label, Option<String>>, (&Node, String)> {
    let mut prices = BTreeMap::new();
    for entry in root.get("capabilities").map_or(&[][..], Node::entries) {
        let label: Label = entry.key.parse().map_err(|error| (&entry.node, format!("{error}; correct the label")))?;
        let price = entry.node.get("permission").and_then(Node::text).filter(|price| !["", "TODO"].contains(price));
        if prices.insert(label.clone(), price.map(str::to_owned)).is_some() {
            return Err((&entry.node, format!("expected each capability once, found {label} again; remove one")));
        }
    }
    Ok(prices)
}

/// A JSON file that is not there yet holds nothing.
fn approved(file: &Path, prices: BTreeMap<Label, Option<String>>) -> Result<Approved, Vec<Located>> {
    if !file.exists() {
        return Ok(Approved { prices, ..Approved::default() });
    }
    let text = read(file)?;
    let place = |offset: usize| {
        let before = text.get(..offset).unwrap_or(&text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Place { line: before.matches('\n').count().saturating_add(1), column: line.chars().count().saturating_add(1) }
    };
    let definitions = Definitions::read(text.clone().into_bytes()).map_err(|faults| -> Vec<Located> {
        faults.iter().map(|fault| at(file, place(fault.at), "", &fault.message)).collect()
    })?;
    Approved::of(prices, &definitions).map_err(|error| vec![at(file, START, "definitions", &error.to_string())])
}

fn read(file: &Path) -> Result<String, Vec<Located>> {
    std::fs::read_to_string(file).map_err(|error| {
        let message = format!("expected a file that can be read as UTF-8 text, but {error}; check that it may be read");
        vec![at(file, START, "", &message)]
    })
}

fn at(file: &Path, place: Place, path: &str, message: &str) -> Located {
    let message = if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") };
    Located { file: file.to_owned(), line: place.line, column: place.column, message }
}
