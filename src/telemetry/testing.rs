//! What the tests of this room share.

use std::time::{Duration, Instant};

use super::counters::Sample;
use super::record::{Outcome, Record};
use crate::protocol::Method;
use crate::refusal::{Reason, Rung};

/// A refusal of a call of an unpriced tool.
pub(super) fn record() -> Record {
    let mut record = Record::new("d1".to_owned(), Instant::now());
    record.outcome = Outcome::Refused;
    record.reason = Some(Reason::PolicyUnpriced);
    record.rung = Some(Rung::Permission);
    record.server = Some(("cases".into(), 0));
    record.principal = "ana@acme.com".into();
    record.method = "tools/call".into();
    record.listed = Some(Method::ToolsCall);
    record.capability = "tool:a\"b".into();
    record.wire_status = Some(200);
    record.decision_time = Duration::from_micros(12);
    record.duration = Duration::from_micros(34);
    record
}

/// The value of the first sample of this name that has all these label values.
pub(super) fn value(samples: &[Sample], name: &str, labels: &[&str]) -> Option<u64> {
    let fits = |sample: &&Sample| {
        sample.name == name && labels.iter().all(|label| sample.labels.iter().any(|(_, value)| value == label))
    };
    samples.iter().find(fits).map(|sample| sample.value)
}
