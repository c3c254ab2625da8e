//! From files to tables: reads `portcullis.yaml` and every file it names, and finds all that is wrong with them at once.
//!
//! The files that a server names are read even where the server's own entry is faulty, so that one round of `check`
//! tells of everything. What is compiled from a faulty part is left out; faults that only follow from it are not told.

mod compiled;
mod documents;
mod kept;
mod listen;
mod report;
mod server;
mod telemetry;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::deserialize;
use super::located::Located;
use super::model::{Configuration, Envoy, MetadataKey, Period, Unmatched};
use super::tree::Node;
use crate::identity::KeyStores;
use crate::ladder::budget::HeldAnswers;
use crate::ladder::{self, EnvoyTimeouts, MetadataKeys, Snapshot};
use crate::upstream::client::Settings;
pub use compiled::{Drain, Serving};
use documents::Documents;
pub use kept::Kept;
use report::Report;

/// What became of the files.
pub struct Loaded {
    /// What to serve; `None` exactly when there are faults.
    pub serving: Option<Serving>,
    /// Everything that is wrong, by file and line.
    pub faults: Vec<Located>,
    /// What is allowed and yet probably not meant, by file and line.
    pub warnings: Vec<Located>,
    /// Every file that was read or named: what to watch for changes.
    pub files: Vec<PathBuf>,
}

/// Reads the configuration at `path` and every file it names.
///
/// `keys` are the key sets of the process: a reload that names the same issuer goes on with the keys that are there.
/// Nothing is fetched.
#[must_use]
pub fn load(path: &Path, keys: &KeyStores) -> Loaded {
    load_after(path, keys, &Kept::default())
}

/// As [`load`], after a configuration whose parts may be used again where nothing about them has changed.
#[must_use]
pub fn load_after(path: &Path, keys: &KeyStores, before: &Kept) -> Loaded {
    let mut report = Report::default();
    let serving = read(path, keys, before, &mut report);
    let (faults, warnings, files) = report.finish();
    Loaded { serving: serving.filter(|_| faults.is_empty()), faults, warnings, files }
}

fn read(path: &Path, keys: &KeyStores, before: &Kept, report: &mut Report) -> Option<Serving> {
    let mut root = documents::tree(path, report)?;
    let base = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
    let documents = Documents::read(&root, &base, report);
    let (configuration, faults) = deserialize::load::<Configuration>(&mut root);
    report.placed(path, faults);
    let configuration = configuration?;
    let context = Context { path, base: &base, root: &root, documents: &documents, keys, before };
    compile(&configuration, &context, report)
}

/// What to list, and where its record lies.
pub struct Recording {
    /// The server's name.
    pub name: String,
    /// How it is listed.
    pub settings: Settings,
    /// The record's YAML file, there or not.
    pub file: PathBuf,
}

/// The part of the entry at `index` that a recording needs. `root` is the tree of the file at `path`.
pub(super) fn recording(
    path: &Path,
    root: &Node,
    configuration: &Configuration,
    index: usize,
) -> Result<Recording, Vec<Located>> {
    let mut report = Report::default();
    let base = path.parent().unwrap_or_else(|| Path::new(""));
    let (documents, keys, before) = (Documents::default(), KeyStores::new(), Kept::default());
    let context = Context { path, base, root, documents: &documents, keys: &keys, before: &before };
    let recording = configuration.servers.get(index).and_then(|server| {
        let (settings, file) = server::recording(server, index, &context, &mut report)?;
        Some(Recording { name: server.name.clone(), settings, file })
    });
    let (faults, ..) = report.finish();
    recording.filter(|_| faults.is_empty()).ok_or(faults)
}

/// What every check needs: the file, its tree, and the files it names.
#[derive(Clone, Copy)]
struct Context<'a> {
    path: &'a Path,
    base: &'a Path,
    root: &'a Node,
    documents: &'a Documents,
    keys: &'a KeyStores,
    /// What the configuration before this one hands on.
    before: &'a Kept,
}

fn compile(configuration: &Configuration, context: &Context<'_>, report: &mut Report) -> Option<Serving> {
    if configuration.servers.is_empty() && report.is_clean() {
        report.fault(
            context.path,
            context.root.locate(&["servers".into()]),
            "expected at least one server, found none; add one",
        );
    }
    let listener = listen::compile(configuration, context, report);
    listen::admin(configuration, context, report);
    let telemetry = telemetry::compile(configuration, context, report);
    let timeouts = envoy(&configuration.envoy, context, report);
    overlaps(configuration, context, report);
    let mut kept = Kept::numbering(context.before, configuration.servers.iter().map(|server| server.name.as_str()));
    // Not a short-circuiting collect: every server is to be looked at.
    let built: Vec<Option<server::Built>> = configuration
        .servers
        .iter()
        .enumerate()
        .map(|(index, server)| server::compile(server, index, &timeouts, context, report))
        .collect();
    let built: Vec<server::Built> = built.into_iter().collect::<Option<_>>()?;
    let mut take = |built: server::Built| {
        kept.keep(Arc::clone(&built.server.name), built.kept);
        let mut server = built.server;
        server.index = kept.number(&server.name).unwrap_or(server.index);
        (Arc::new(server), built.recorded)
    };
    let (servers, recorded) = built.into_iter().map(&mut take).unzip();
    let unmatched = match configuration.unmatched {
        Unmatched::Deny => ladder::Unmatched::Deny,
        Unmatched::Pass => ladder::Unmatched::Pass,
    };
    let snapshot = match Snapshot::new(servers, unmatched) {
        Ok(snapshot) => snapshot
            .with_held_answers(Arc::new(HeldAnswers::new(configuration.held_answers.bytes())))
            .with_envoy(timeouts)
            .with_metadata(metadata(&configuration.envoy)),
        Err(overlaps) => {
            // What `overlaps` has not told already.
            let told = !report.is_clean();
            for overlap in overlaps.iter().filter(|_| !told) {
                let node = context.root.locate(&["servers".into(), overlap.second.into(), "match".into()]);
                report.fault(
                    context.path,
                    node,
                    &format!("expected each request to belong to one server, but {overlap}"),
                );
            }
            return None;
        }
    };
    let (address, tls) = listener?;
    Some(Serving {
        address,
        tls,
        admin: configuration.listen.as_ref().and_then(|listen| listen.admin.clone()),
        snapshot,
        kept,
        recorded,
        worker_threads: configuration.worker_threads.get(),
        max_streams: usize::try_from(configuration.max_streams.get()).unwrap_or(usize::MAX),
        drain: Drain {
            delay: configuration.drain.delay.map_or(Duration::ZERO, Period::get),
            timeout: configuration.drain.timeout.get(),
        },
        telemetry,
    })
}

/// How long Envoy waits, as it is told here.
fn envoy(source: &Envoy, context: &Context<'_>, report: &mut Report) -> EnvoyTimeouts {
    let (message, max) = (source.message_timeout.get(), source.max_message_timeout.map(Period::get));
    if let Some(max) = max.filter(|max| *max <= message) {
        report.fault(
            context.path,
            context.root.locate(&["envoy".into(), "max_message_timeout".into()]),
            &format!(
                "expected more than `message_timeout` ({message:?}), found {max:?}; Envoy's filter waits that long anyway: \
                 raise it there and here, or remove it"
            ),
        );
    }
    EnvoyTimeouts { message, max }
}

/// What verdicts say for those who read it.
fn metadata(source: &Envoy) -> MetadataKeys {
    let says = |key| source.metadata.contains(&key);
    MetadataKeys {
        method: says(MetadataKey::Method),
        capability: says(MetadataKey::Capability),
        principal: says(MetadataKey::Principal),
    }
}

/// Names and matchers that two servers share.
fn overlaps(configuration: &Configuration, context: &Context<'_>, report: &mut Report) {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut matched: HashMap<(&str, String), usize> = HashMap::new();
    for (index, server) in configuration.servers.iter().enumerate() {
        let at = |key: &str| context.root.locate(&["servers".into(), index.into(), key.into()]);
        if let Some(first) = names.insert(&server.name, index) {
            let message = format!(
                "expected a name of its own, found `{}`, which servers[{first}] has too; rename one",
                server.name
            );
            report.fault(context.path, at("name"), &message);
        }
        let scheme =
            server.resource.as_deref().and_then(|url| url.split_once("://")).map_or("https", |(scheme, _)| scheme);
        for (kind, value) in server.matcher.iter().flat_map(|matcher| matcher.keys(scheme)) {
            let Some(first) = matched.insert((kind, value.clone()), index).filter(|first| *first != index) else {
                continue;
            };
            let message = format!(
                "expected each request to belong to one server, found the {kind} `{value}` in servers[{first}] too; remove \
                 it from one of the two"
            );
            report.fault(context.path, at("match"), &message);
        }
    }
}
