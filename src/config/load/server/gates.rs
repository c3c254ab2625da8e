//! A server's gates.

use super::Check;
use crate::config::load::report::Report;
use crate::config::model::Kind;
use crate::gates::{Gates, Setting};
use crate::policy::{Label, Prices, Segment};

/// The gates, ready to be asked; `None` when one is faulty, which was told. Without prices (which was told) labels are not
/// held against them.
pub(super) fn gates(check: &Check<'_>, prices: Option<&Prices>, report: &mut Report) -> Option<Gates> {
    // What is left of a list of which something was taken out has other indices than what stands in the file.
    if !check.is_whole("gates") {
        return None;
    }
    let costs = |label: &Label| prices.is_none_or(|prices| prices.get(label).is_some());
    let setting = Setting {
        base: check.context.base,
        priced: (check.server.kind == Kind::Mcp).then_some(&costs),
        budget: check.server.gates_budget.get(),
    };
    match Gates::build(&check.server.gates, &setting) {
        Ok(gates) => Some(gates),
        Err(faults) => {
            for fault in faults {
                let path: Vec<Segment> = std::iter::once("gates".into()).chain(fault.path).collect();
                check.fault(&path, &fault.message, report);
            }
            None
        }
    }
}
