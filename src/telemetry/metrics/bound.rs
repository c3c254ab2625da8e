//! Histograms bound to their attributes. Looked up by the attributes' texts for each observation, they took most of what a
//! decision cost the audit's writer.
//!
//! What is kept here is a way to the SDK's own data, found by a few small keys; it may be forgotten at any time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundHistogram, Histogram};

use super::{RpcCode, error_type, operation, rpc_code};
use crate::protocol::Method;
use crate::telemetry::counters::Capability;
use crate::telemetry::record::{Record, Wait};

/// Phases of a decision: all of it, our own work, and the waits.
const PHASES: usize = 2 + Wait::ALL.len();

/// What the attributes of an operation are made of, besides its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Operation {
    method: Option<Method>,
    capability: Capability,
    code: Option<RpcCode>,
    error: Option<&'static str>,
}

#[derive(Default)]
struct Server {
    phases: [Option<BoundHistogram<f64>>; PHASES],
    operations: HashMap<Operation, BoundHistogram<f64>>,
}

/// The two histograms that every decision is told to.
pub(super) struct Bound {
    decision: Histogram<f64>,
    operation: Histogram<f64>,
    servers: HashMap<Arc<str>, Server>,
    /// The name of what belongs to no server.
    nobody: Arc<str>,
    /// How many are bound, and how many may be: reloads can bring ever new names.
    count: usize,
    most: usize,
}

impl Bound {
    pub(super) fn new(decision: Histogram<f64>, operation: Histogram<f64>, most: usize) -> Self {
        Self { decision, operation, servers: HashMap::new(), nobody: super::NONE.into(), count: 0, most }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Tells how long a decision took, all of it and by phase, and how long its operation, if that has `ended`.
    pub(super) fn tell(&mut self, record: &Record, ended: bool) {
        if self.count >= self.most {
            self.servers.clear();
            self.count = 0;
        }
        let name = record.server.as_ref().map_or(&self.nobody, |(name, _)| name);
        let kept = self.servers.entry(Arc::clone(name)).or_default();
        let attribute = || KeyValue::new("server", Arc::clone(name));
        let mut phase = |at: usize, phase: &'static str, time: Duration| {
            let Some(kept) = kept.phases.get_mut(at) else { return };
            let bind = || {
                self.count += 1;
                self.decision.bind(&[KeyValue::new("phase", phase), attribute()])
            };
            kept.get_or_insert_with(bind).record(time.as_secs_f64());
        };
        phase(0, "total", record.decision_time);
        if !record.phases.own.is_zero() {
            phase(1, "own", record.phases.own);
        }
        for (wait, time) in record.phases.waits() {
            phase(2 + wait as usize, wait.as_str(), time);
        }
        if ended {
            let bind = || {
                self.count += 1;
                self.operation.bind(&operation(record, attribute()))
            };
            kept.operations.entry(Operation::of(record)).or_insert_with(bind).record(record.duration.as_secs_f64());
        }
    }
}

impl Operation {
    fn of(record: &Record) -> Self {
        let (code, error) = (rpc_code(record), error_type(record));
        Self { method: record.listed, capability: Capability::of(record), code, error }
    }
}
