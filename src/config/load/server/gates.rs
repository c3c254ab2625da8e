//! A server's gates.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Check;
use crate::config::load::kept::Made;
use crate::config::load::report::Report;
use crate::config::model::Kind;
use crate::gates::config::GateSource;
use crate::gates::{Gates, Setting};
use crate::ladder::EnvoyTimeouts;
use crate::policy::{Label, Prices, Segment};

/// The gates, ready to be asked; `None` when one is faulty, which was told. Without prices (which was told) labels are not
/// held against them.
///
/// After a reload that changed nothing about them they are those of before: connected, and resting where they rested.
pub(super) fn gates(
    check: &Check<'_>,
    prices: Option<&Prices>,
    envoy: &EnvoyTimeouts,
    report: &mut Report,
) -> Option<(Made, Arc<Gates>)> {
    // What is left of a list of which something was taken out has other indices than what stands in the file.
    if !check.is_whole("gates") {
        return None;
    }
    let budget = check.server.gates_budget.get();
    if !check.server.gates.is_empty() && budget >= envoy.most() {
        check.fault(&["gates_budget".into()], &late(budget, envoy), report);
        return None;
    }
    let costs = |label: &Label| prices.is_none_or(|prices| prices.get(label).is_some());
    let setting =
        Setting { base: check.context.base, priced: (check.server.kind == Kind::Mcp).then_some(&costs), budget };
    let ca = |gate: &GateSource| {
        let of = |source: &Option<PathBuf>| source.as_ref().map(|file| check.context.base.join(file));
        gate.ext_authz.as_ref().and_then(|gate| of(&gate.ca)).or_else(|| of(&gate.grpc.as_ref()?.ca))
    };
    let files: Vec<PathBuf> = check.server.gates.iter().filter_map(ca).collect();
    for file in &files {
        report.file(file);
    }
    let files = files.iter().map(PathBuf::as_path);
    let made = Made::of(&(&check.server.gates, check.server.gates_budget, check.server.kind), files);
    match Gates::build(&check.server.gates, &setting) {
        Ok(gates) => {
            let before = check.context.before.server(&check.server.name).map(|kept| &kept.gates);
            let same = before.filter(|(before, _)| *before == made).map(|(_, gates)| Arc::clone(gates));
            Some((made, same.unwrap_or_else(|| Arc::new(gates))))
        }
        Err(faults) => {
            for fault in faults {
                let path: Vec<Segment> = std::iter::once("gates".into()).chain(fault.path).collect();
                check.fault(&path, &fault.message, report);
            }
            None
        }
    }
}

/// Envoy answers 504 without a frame when its timer ends first.
fn late(budget: Duration, envoy: &EnvoyTimeouts) -> String {
    let most = envoy.most();
    let (key, more) = match envoy.max {
        Some(_) => ("max_message_timeout", "raise that in Envoy's filter and here"),
        None => ("message_timeout", "set `max_message_timeout` in Envoy's filter and under `envoy` here"),
    };
    format!(
        "expected the gates to be done before Envoy gives up (`envoy.{key}`, {most:?}), but they may take {budget:?}; lower \
         `gates_budget`, or {more}"
    )
}
