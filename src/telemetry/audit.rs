//! One audit record per decision, written as JSON lines by a thread of its own.
//!
//! The request path only hands a record over. The queue is bounded: when whatever reads standard output is slower than
//! the decisions, records are dropped and counted rather than calls delayed.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime};

use crate::message::write;
use crate::protocol::Method;
use crate::refusal::frame::Tier;
use crate::refusal::{GateCode, GateMark, Reason, Rung};

use super::contract::AuditEvent;
use super::counters::Counters;

/// Records that may wait for the writer.
const QUEUE: usize = 16 * 1024;
/// How long the writer lets records gather: woken for each, it took a tenth of the CPU (docs/performance.md). Meanwhile
/// the queue holds what a hundred times the fastest decisions bring.
const GATHER: Duration = Duration::from_millis(2);
/// Name and version of the contract, `proto/portcullis/audit/v1/audit.proto`.
pub const SCHEMA: &str = "portcullis.audit.v1";

/// How a decision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Forwarded.
    Allowed,
    /// Answered in the server's place, or inside its running stream.
    Refused,
    /// Not ours, and let through by configuration.
    Passed,
    /// Answered by a gate in the server's place.
    Answered,
    /// The other side went away, or Envoy answered by itself, before a decision.
    Aborted,
}

impl Outcome {
    /// The word in records, metadata and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allow",
            Self::Refused => "refuse",
            Self::Passed => "pass",
            Self::Answered => "answer",
            Self::Aborted => "abort",
        }
    }
}

/// What rung 21 did about an answer, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Screened {
    /// Something was found, and the answer has no place for a notice.
    Counted,
    /// A notice was put in front.
    Notice,
    /// An error took the output's place.
    Withheld,
}

impl Screened {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Counted, Self::Notice, Self::Withheld];

    /// The word in records and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Notice => "notice",
            Self::Withheld => "withheld",
        }
    }
}

/// One decision, as the exchange saw it.
#[derive(Clone, Debug)]
pub struct Record {
    /// The decision's id.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// Who refused.
    pub rung: Option<Rung>,
    /// Whether a refusal was carried out.
    pub enforced: bool,
    /// Name and index of the server.
    pub server: Option<(Arc<str>, usize)>,
    /// Email, else `issuer#subject`; empty when unknown.
    pub principal: Arc<str>,
    /// Issuer of the token; empty when unknown.
    pub issuer: Arc<str>,
    /// Subject of the token; empty when unknown.
    pub subject: Arc<str>,
    /// The method as the caller wrote it, bounded; empty when none was read.
    pub method: Cow<'static, str>,
    /// The method when it is a listed one.
    pub listed: Option<Method>,
    /// What the call reached; empty when nothing of its own.
    pub capability: Arc<str>,
    /// The status that went down; `None` where the answer was not ours to read.
    pub wire_status: Option<u16>,
    /// From the request's head to the verdict.
    pub decision_time: Duration,
    /// From the request's head to the end.
    pub duration: Duration,
    /// Listing entries left out.
    pub entries_hidden: u64,
    /// What was done about the answer's content, and why.
    pub screened: Option<(Screened, &'static str)>,
    /// How much of a frame could be rendered.
    pub tier: Tier,
    /// For the operator only.
    pub log: Option<String>,
    /// The gate that refused or answered.
    pub gate: Option<Box<GateMark>>,
    /// Codes of every refusal that was recorded only, in the order of the rungs.
    pub would_refuse: Vec<String>,
}

impl Record {
    /// An empty record: nothing decided.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self {
            id,
            outcome: Outcome::Aborted,
            reason: None,
            rung: None,
            enforced: true,
            server: None,
            principal: Arc::default(),
            issuer: Arc::default(),
            subject: Arc::default(),
            method: Cow::Borrowed(""),
            listed: None,
            capability: Arc::default(),
            wire_status: None,
            decision_time: Duration::ZERO,
            duration: Duration::ZERO,
            entries_hidden: 0,
            screened: None,
            tier: Tier::Full,
            log: None,
            gate: None,
            would_refuse: Vec::new(),
        }
    }

    /// The record under its contract.
    #[must_use]
    pub fn event(self, at: SystemTime) -> AuditEvent {
        let read = self.wire_status.is_some();
        let code = self.gate.as_ref().and_then(|gate| gate.code.as_ref()).map(GateCode::as_str);
        let reason = self.reason.map(|reason| code.unwrap_or(reason.as_str()).to_owned()).unwrap_or_default();
        AuditEvent {
            schema: SCHEMA.to_owned(),
            decision_id: self.id,
            time: humantime::format_rfc3339_micros(at).to_string(),
            decision: self.outcome.as_str().to_owned(),
            reason,
            rung: self.rung.map(Rung::as_str).unwrap_or_default().to_owned(),
            enforced: self.enforced,
            server: self.server.map(|(name, _)| name.to_string()).unwrap_or_default(),
            principal: self.principal.to_string(),
            issuer: self.issuer.to_string(),
            subject: self.subject.to_string(),
            method: self.method.into_owned(),
            capability: self.capability.to_string(),
            wire_status: self.wire_status.map_or_else(|| "unknown".to_owned(), |status| status.to_string()),
            decision_us: micros(self.decision_time),
            duration_us: read.then(|| micros(self.duration)),
            entries_hidden: self.entries_hidden,
            detail: self.log.unwrap_or_default(),
            screened: self.screened.map(|(action, _)| action.as_str()).unwrap_or_default().to_owned(),
            screened_reason: self.screened.map(|(_, why)| why).unwrap_or_default().to_owned(),
            gate: self.gate.map(|gate| gate.name.to_string()).unwrap_or_default(),
            would_refuse: self.would_refuse,
        }
    }
}

/// Writes an event as one JSON line: members without a value are left out, numbers and booleans are always there.
pub fn write_line(event: &AuditEvent, out: &mut Vec<u8>) {
    let texts = [
        ("schema", &event.schema),
        ("decision_id", &event.decision_id),
        ("time", &event.time),
        ("decision", &event.decision),
        ("reason", &event.reason),
        ("rung", &event.rung),
        ("server", &event.server),
        ("principal", &event.principal),
        ("issuer", &event.issuer),
        ("subject", &event.subject),
        ("method", &event.method),
        ("capability", &event.capability),
        ("wire_status", &event.wire_status),
        ("detail", &event.detail),
        ("screened", &event.screened),
        ("screened_reason", &event.screened_reason),
        ("gate", &event.gate),
    ];
    out.push(b'{');
    for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        write::string(out, name);
        out.push(b':');
        write::string(out, text);
        out.push(b',');
    }
    if !event.would_refuse.is_empty() {
        out.extend_from_slice(br#""would_refuse":["#);
        for (n, code) in event.would_refuse.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            write::string(out, code);
        }
        out.extend_from_slice(b"],");
    }
    let duration = event.duration_us.map(|us| format!(r#","duration_us":{us}"#)).unwrap_or_default();
    let hidden = if event.entries_hidden == 0 {
        String::new()
    } else {
        format!(r#","entries_hidden":{}"#, event.entries_hidden)
    };
    let rest = format!(r#""enforced":{},"decision_us":{}{duration}{hidden}}}"#, event.enforced, event.decision_us);
    out.extend_from_slice(rest.as_bytes());
    out.push(b'\n');
}

/// Where records go.
#[derive(Clone)]
pub struct Audit {
    queue: Option<SyncSender<(Record, SystemTime)>>,
    counters: Arc<Counters>,
}

impl Audit {
    /// Starts the writer. With `None` records are counted but written nowhere (`audit: {stdout: off}`).
    ///
    /// The returned handle ends once every [`Audit`] is dropped and the queue is written.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        sink: Option<Box<dyn Write + Send>>,
        counters: Arc<Counters>,
    ) -> std::io::Result<(Self, Option<std::thread::JoinHandle<()>>)> {
        let Some(sink) = sink else { return Ok((Self { queue: None, counters }, None)) };
        let (queue, records) = sync_channel(QUEUE);
        let lost = Arc::clone(&counters);
        let writer = std::thread::Builder::new().name("audit".to_owned()).spawn(move || run(&records, sink, &lost))?;
        Ok((Self { queue: Some(queue), counters }, Some(writer)))
    }

    /// Hands one record over. Never blocks.
    pub fn emit(&self, record: Record, at: SystemTime) {
        self.counters.decided(&record);
        if let Some((action, why)) = record.screened {
            let server = record.server.as_ref().map_or("", |(name, _)| name);
            let (decision, capability, action) = (record.id.as_str(), &*record.capability, action.as_str());
            tracing::warn!(decision, server, capability, action, "an answer was screened: {why}");
        }
        let Some(queue) = &self.queue else { return };
        match queue.try_send((record, at)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.counters.audit_dropped(),
        }
    }
}

/// Writes records a few milliseconds after they come, all that wait in one go: decisions then neither wake this thread nor
/// make a system call each.
fn run(records: &Receiver<(Record, SystemTime)>, mut sink: Box<dyn Write + Send>, counters: &Counters) {
    let mut lines = Vec::with_capacity(4096);
    while let Ok((record, at)) = records.recv() {
        let mut count = 1;
        write_line(&record.event(at), &mut lines);
        std::thread::sleep(GATHER);
        while lines.len() < 256 * 1024 {
            let Ok((record, at)) = records.try_recv() else { break };
            count += 1;
            write_line(&record.event(at), &mut lines);
        }
        if sink.write_all(&lines).and_then(|()| sink.flush()).is_err() {
            (0..count).for_each(|_| counters.audit_dropped());
        }
        lines.clear();
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
