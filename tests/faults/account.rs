//! What may not have happened, whatever was done to the parts: held against what the callers got, what the upstream saw and
//! what the audit says.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::load::{CHALLENGE, Call, End, Kind, number_of, number_seen};
use crate::support::{Portcullis, Seen, fixture, wait_for};

/// What a run of one fault came to.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) calls: usize,
    pub(crate) results: usize,
    /// Refused by Portcullis.
    pub(crate) refused: usize,
    /// Refused by Envoy.
    pub(crate) envoy: usize,
    /// Answers that stop, connections that end.
    pub(crate) broken: usize,
    pub(crate) hung: usize,
    /// Answered without an audit record, where the process was killed.
    pub(crate) unaudited: usize,
    pub(crate) slowest: Duration,
    /// Calls at the upstream that were not decided *allow*.
    pub(crate) undecided: Vec<String>,
    /// Everything else that may not be.
    pub(crate) wrong: Vec<String>,
}

/// A refusal for one of these may come when the call had been forwarded.
fn may_have_run(reason: &str) -> bool {
    reason.starts_with("answer.") || matches!(reason, "upstream.unauthorized" | "overloaded" | "internal")
}

/// The audit records of the calls, by number, once there is one for each call that Portcullis answered and for each that was
/// forwarded: a caller that leaves ends its call a moment later.
pub(crate) fn audit(portcullis: &Portcullis, calls: &[Call], seen: &[Seen], lossy: bool) -> HashMap<u64, Vec<Value>> {
    let answered = calls.iter().filter(|call| is_answered(call)).map(|call| call.number);
    let answered: HashSet<u64> = answered.chain(seen.iter().filter_map(number_seen)).collect();
    let read = || {
        let mut found: HashMap<u64, Vec<Value>> = HashMap::new();
        for record in portcullis.records() {
            if let Some(number) = record["trace_id"].as_str().and_then(number_of) {
                found.entry(number).or_default().push(record);
            }
        }
        // Envoy opens a stream that broke off before its answer anew; the first attempt leaves a record that says so.
        for records in found.values_mut().filter(|records| records.len() > 1) {
            records.sort_by_key(|record| record["decision"] == "abort");
            while records.len() > 1 && records.last().is_some_and(|record| record["decision"] == "abort") {
                records.pop();
            }
        }
        found
    };
    let patience = Duration::from_secs(if lossy { 1 } else { 10 });
    let complete = || {
        (portcullis.audited() >= answered.len())
            .then(read)
            .filter(|found| answered.iter().all(|n| found.contains_key(n)))
    };
    wait_for(patience, complete).unwrap_or_else(read)
}

fn is_answered(call: &Call) -> bool {
    matches!(call.end, End::Result | End::Refused(_))
}

impl Account {
    /// Of what the callers got. Within `healthy`, from one moment to another, each call must have ended as it should.
    pub(crate) fn of(calls: &[Call], healthy: &[(Instant, Instant)]) -> Self {
        let mut account = Self { calls: calls.len(), ..Self::default() };
        for call in calls {
            account.slowest = account.slowest.max(call.ended - call.began);
            match &call.end {
                End::Result => account.results += 1,
                End::Refused(_) => account.refused += 1,
                End::Envoy(_) => account.envoy += 1,
                End::Cut | End::Closed => account.broken += 1,
                End::Hung => account.hung += 1,
                End::Wrong(what) => account.wrong.push(what.clone()),
            }
            let within = healthy.iter().any(|(from, to)| *from <= call.began && call.ended <= *to);
            if within && !call.is_right() {
                account.wrong.push(format!("nothing was wrong, and yet {call:?}"));
            }
        }
        account
    }

    /// Nothing reached the upstream but what was decided, and that once.
    pub(crate) fn reached(&mut self, seen: &[Seen], calls: &[Call], audit: &HashMap<u64, Vec<Value>>, lossy: bool) {
        let ends: HashMap<u64, &End> = calls.iter().map(|call| (call.number, &call.end)).collect();
        let mut before = HashSet::new();
        for request in seen {
            let Some(number) = number_seen(request) else {
                self.undecided.push(format!("a request of nobody's: {request:?}"));
                continue;
            };
            if !before.insert(number) {
                self.wrong.push(format!("call {number} reached the upstream twice"));
            }
            if request.cut {
                self.wrong.push(format!("call {number} reached the upstream in part"));
            }
            // Only the verdict exchanges the caller's token for the credential of the server.
            let exchanged = request.header("authorization") == [format!("Bearer {}", fixture::CREDENTIAL)];
            if Kind::of(number) == Kind::Refused || !exchanged {
                self.undecided.push(format!("call {number}: {request:?}"));
            }
            if let Some(End::Refused(reason)) = ends.get(&number)
                && !may_have_run(reason)
            {
                self.undecided.push(format!("call {number}, whose caller was refused for {reason}"));
            }
            match audit.get(&number).map(Vec::as_slice) {
                None | Some([]) if lossy => {}
                None | Some([]) => self.wrong.push(format!("call {number} was forwarded and has no audit record")),
                Some(records) if records.iter().any(|record| record["decision"] == "allow") => {}
                Some([record, ..]) => {
                    let reason = record["reason"].as_str().unwrap_or_default();
                    if record["decision"] != "refuse" || !may_have_run(reason) {
                        self.undecided.push(format!("call {number}, whose record is {record}"));
                    }
                }
            }
        }
    }

    /// Each call that Portcullis answered has one record, and it says what the caller was told. `retried`: Envoy may have had it
    /// decided again, because the first verdict was lost on its way. `crowded`: there is not room for the records of all that is
    /// refused as `overloaded`.
    pub(crate) fn audited(&mut self, calls: &[Call], audit: &HashMap<u64, Vec<Value>>, losses: Losses) {
        for call in calls.iter().filter(|call| is_answered(call)) {
            let records = audit.get(&call.number).map(Vec::as_slice).unwrap_or_default();
            let said = records.iter().any(|record| says(record, &call.end));
            let crowded_out = losses.crowded && call.end == End::Refused("overloaded".into());
            match records {
                [] if losses.killed || crowded_out => self.unaudited += 1,
                [] => self.wrong.push(format!("no audit record of {call:?}")),
                [_] if said => {}
                [_, _, ..] if said && losses.retried => {}
                records => self.wrong.push(format!("{call:?} and its records differ: {records:?}")),
            }
        }
    }
}

/// What a fault does to records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// Open exchanges and what was not yet written leave none.
    pub(crate) killed: bool,
    /// Streams break off and are opened anew.
    pub(crate) retried: bool,
    /// More refusals than there is room for.
    pub(crate) crowded: bool,
}

/// Whether the record tells the end that the caller knows; a challenge does not name its reason.
fn says(record: &Value, end: &End) -> bool {
    match end {
        End::Result => record["decision"] == "allow",
        End::Refused(reason) if reason == CHALLENGE => {
            record["reason"].as_str().is_some_and(|reason| reason.starts_with("token."))
        }
        End::Refused(reason) => record["decision"] == "refuse" && record["reason"] == reason.as_str(),
        _ => false,
    }
}
