//! From files to tables: reads `portcullis.yaml` and every file it names, and finds all that is wrong with them at once.
//!
//! The files that a server names are read even where the server's own entry is faulty, so that one round of `check`
//! tells of everything. What is compiled from a faulty part is left out; faults that only follow from it are not told.

mod compiled;
mod documents;
mod listen;
mod report;
mod server;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::deserialize;
use super::located::Located;
use super::model::{AuditStdout, Configuration, unavailable};
use super::tree::Node;
pub use compiled::{Compiled, CompiledServer, Listener, Matchers, TlsMaterial};
use documents::Documents;
use report::Report;

/// What became of the files.
#[derive(Debug)]
pub struct Loaded {
    /// The tables; `None` exactly when there are faults.
    pub compiled: Option<Compiled>,
    /// Everything that is wrong, by file and line.
    pub faults: Vec<Located>,
    /// What is allowed and yet probably not meant, by file and line.
    pub warnings: Vec<Located>,
    /// Every file that was read or named: what to watch for changes.
    pub files: Vec<PathBuf>,
}

/// Reads the configuration at `path` and every file it names.
#[must_use]
pub fn load(path: &Path) -> Loaded {
    let mut report = Report::default();
    let compiled = read(path, &mut report);
    let (faults, warnings, files) = report.finish();
    Loaded { compiled: compiled.filter(|_| faults.is_empty()), faults, warnings, files }
}

fn read(path: &Path, report: &mut Report) -> Option<Compiled> {
    let mut root = documents::tree(path, report)?;
    let base = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
    let documents = Documents::read(&root, &base, report);
    let (configuration, faults) = deserialize::load::<Configuration>(&mut root, unavailable);
    report.placed(path, faults);
    let configuration = configuration?;
    let context = Context { path, base: &base, root: &root, documents: &documents };
    compile(&configuration, &context, report)
}

/// What every check needs: the file, its tree, and the files it names.
#[derive(Clone, Copy)]
struct Context<'a> {
    path: &'a Path,
    base: &'a Path,
    root: &'a Node,
    documents: &'a Documents,
}

fn compile(configuration: &Configuration, context: &Context<'_>, report: &mut Report) -> Option<Compiled> {
    if configuration.servers.is_empty() && report.is_clean() {
        report.fault(context.path, context.root.locate(&["servers".into()]), "expected at least one server, found none; add one");
    }
    let listener = listen::compile(configuration, context, report);
    overlaps(configuration, context, report);
    let servers: Vec<Option<CompiledServer>> = configuration
        .servers
        .iter()
        .enumerate()
        .map(|(index, server)| server::compile(server, index, context, report))
        .collect();
    Some(Compiled {
        listener: listener?,
        unmatched: configuration.unmatched,
        worker_threads: configuration.worker_threads.get(),
        max_streams: configuration.max_streams.get(),
        servers: servers.into_iter().collect::<Option<_>>()?,
        audit: configuration.telemetry.audit.stdout == AuditStdout::Json,
    })
}

/// Names and matchers that two servers share.
fn overlaps(configuration: &Configuration, context: &Context<'_>, report: &mut Report) {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut matched: HashMap<(&str, String), usize> = HashMap::new();
    for (index, server) in configuration.servers.iter().enumerate() {
        let at = |key: &str| context.root.locate(&["servers".into(), index.into(), key.into()]);
        if let Some(first) = names.insert(&server.name, index) {
            let message =
                format!("expected a name of its own, found `{}`, which servers[{first}] has too; rename one", server.name);
            report.fault(context.path, at("name"), &message);
        }
        for (kind, value) in server.matcher.keys() {
            let message = format!(
                "expected each request to belong to one server, found the {kind} `{value}` twice (also in the `match` of "
            );
            match matched.insert((kind, value), index) {
                Some(first) if first != index => {
                    let message = format!("{message}{}); remove it from one of the two", configuration.servers[first].name);
                    report.fault(context.path, at("match"), &message);
                }
                _ => {}
            }
        }
    }
}
