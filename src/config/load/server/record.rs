//! A server's record and prices, held against its policy and scopes.

use std::path::{Path, PathBuf};

use super::Check;
use super::policy::{Home, capability_scopes, place};
use crate::config::load::documents::RecordDocument;
use crate::config::load::report::Report;
use crate::config::model::Kind;
use crate::config::tree::Node;
use crate::policy::{Fault, Part, Policy, PriceEntry, Prices, Reconciled, Scopes, Segment};
use crate::record::{CapabilitySource, Record, RecordFault, Recorded};

/// What was approved, what it costs, and where that comes from.
pub(super) struct Judged {
    pub(super) record: Record,
    pub(super) prices: Prices,
    pub(super) recorded: Option<Recorded>,
}

/// The record and the prices; empty ones for plain HTTP, `None` when something is faulty, which was told.
pub(super) fn record(
    check: &Check<'_>,
    policy: Option<&Policy>,
    home: &Home<'_>,
    scopes: Option<&Scopes>,
    report: &mut Report,
) -> Option<Judged> {
    let file = match (&check.server.record, check.server.kind) {
        (Some(record), Kind::Mcp) => check.context.base.join(&record.file),
        (None, Kind::Mcp) => {
            check.missing(&[], "record", report);
            return None;
        }
        (_, Kind::Http) => {
            let prices = Prices::reconcile(&[], &[], policy, scopes).prices?;
            return Some(Judged { record: Record::default(), prices, recorded: None });
        }
    };
    let document = check.context.documents.record(&file)?;
    let record = match Record::build(&document.source, &document.definitions.definitions) {
        Ok((record, warnings)) => {
            // An entry that could not be read is not one that nobody priced.
            for warning in warnings.into_iter().filter(|_| document.is_whole()) {
                told(&file, document, warning, true, report);
            }
            Some(record)
        }
        Err(faults) => {
            for fault in faults {
                told(&file, document, fault, false, report);
            }
            None
        }
    };
    origin(check, &file, document, report);
    let prices = prices(check, policy, scopes, &file, document, home, report);
    Some(Judged { record: record?, prices: prices?, recorded: document.source.recorded.clone() })
}

/// A fault or warning of the record at its place in one of its two files.
fn told(file: &Path, document: &RecordDocument, fault: RecordFault, warning: bool, report: &mut Report) {
    match fault {
        RecordFault::Source { path, message } => {
            let node = document.root.locate(&path);
            if warning { report.warning(file, node, &message) } else { report.fault(file, node, &message) }
        }
        RecordFault::Definitions { at, message } => {
            let (path, place) = (&document.definitions.path, document.definitions.lines.place(at));
            if warning { report.warning_at(path, place, message) } else { report.fault_at(path, place, message) }
        }
    }
}

/// A record that was taken from another server prices another server's tools.
fn origin(check: &Check<'_>, file: &Path, document: &RecordDocument, report: &mut Report) {
    let from = document.source.recorded.as_ref().and_then(|recorded| recorded.from.as_ref());
    if let (Some(from), Some(url)) = (from, &check.server.upstream.url)
        && from != url
    {
        let node = document.root.locate(&["recorded".into(), "from".into()]);
        let message = format!(
            "the record was taken from `{from}`, but `{}` forwards to `{url}`; record that server, or correct the one that \
             is wrong",
            check.server.name
        );
        report.warning(file, node, &message);
    }
}

/// The prices held against policy and scopes. What can be checked without one of the two still is.
fn prices(
    check: &Check<'_>,
    policy: Option<&Policy>,
    scopes: Option<&Scopes>,
    file: &Path,
    document: &RecordDocument,
    home: &Home<'_>,
    report: &mut Report,
) -> Option<Prices> {
    let place = |part: Part, path: &[Segment]| -> (PathBuf, &Node) {
        match part {
            Part::Policy => (home.path.clone(), home.root.locate(path)),
            Part::Capabilities => {
                (file.to_owned(), document.root.locate([&Segment::from("capabilities")].into_iter().chain(path)))
            }
            _ => (check.context.path.to_owned(), check.at(&place(check, part, path))),
        }
    };
    let Reconciled { prices, faults, warnings } =
        Prices::reconcile(&entries(document), &capability_scopes(check), policy, scopes);
    // A scope of a capability whose entry could not be read is no fault of its own.
    let whole = document.is_whole();
    let follows = |fault: &Fault| !whole && fault.part == Part::CapabilityScopes;
    for Fault { part, path, message } in faults.into_iter().filter(|fault| !follows(fault)) {
        let (file, node) = place(part, &path);
        report.fault(&file, node, &message);
    }
    for Fault { part, path, message } in warnings.into_iter().filter(|_| document.is_whole()) {
        let (file, node) = place(part, &path);
        report.agree(&file, node, &message);
    }
    prices
}

/// What the record says each capability costs, labels as written.
fn entries(document: &RecordDocument) -> Vec<PriceEntry> {
    let price = |(label, decided): (&String, &CapabilitySource)| PriceEntry {
        label: label.clone(),
        permission: decided.permission.as_str().to_owned(),
        uri: decided.uri.clone(),
    };
    document.source.capabilities.iter().map(price).collect()
}
