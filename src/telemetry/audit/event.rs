//! A record under its contract, `proto/portcullis/audit/v1/audit.proto`, and as one line of JSON.

use std::time::{Duration, SystemTime};

use crate::message::write;
use crate::refusal::{GateCode, Rung};
use crate::telemetry::contract::AuditEvent;
use crate::telemetry::record::Record;

/// Name and version of the contract.
pub const SCHEMA: &str = "portcullis.audit.v1";

impl Record {
    /// The reason as it is read: a gate's own code, else the reason's; empty without one.
    #[must_use]
    pub fn reason_text(&self) -> &str {
        let code = self.gate.as_ref().and_then(|gate| gate.code.as_ref()).map(GateCode::as_str);
        self.reason.map(|reason| code.unwrap_or(reason.as_str())).unwrap_or_default()
    }

    /// Where the call came from, without the port; empty when unknown.
    #[must_use]
    pub fn client_address(&self) -> &str {
        let source = self.source.as_deref().unwrap_or_default();
        let Some((host, port)) = source.rsplit_once(':') else { return source };
        // An IPv6 address with a port is in brackets; a path is no address with a port.
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare.or_else(|| (!host.contains(':')).then_some(host)) {
            Some(host) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => source,
        }
    }

    /// The record under its contract. `trace_id` is that of the span which tells of it, where there is one.
    #[must_use]
    pub fn event(self, at: SystemTime, trace_id: Option<String>) -> AuditEvent {
        let mut event = AuditEvent::default();
        let trace_id = trace_id.or_else(|| self.parent.as_ref().map(|parent| parent.trace_hex())).unwrap_or_default();
        fill(&mut event, self, &mut Stamp::default(), at, &trace_id);
        event
    }
}

/// Tells a record in the place of another event, whose texts' memory is used again.
pub(super) fn fill(event: &mut AuditEvent, record: Record, stamp: &mut Stamp, at: SystemTime, trace_id: &str) {
    let read = record.wire_status.is_some();
    set(&mut event.schema, SCHEMA);
    stamp.write(&mut event.time, at);
    set(&mut event.decision, record.outcome.as_str());
    set(&mut event.reason, record.reason_text());
    set(&mut event.decision_id, &record.id);
    set(&mut event.rung, record.rung.map(Rung::as_str).unwrap_or_default());
    event.enforced = record.enforced;
    set(&mut event.server, record.server.as_ref().map_or("", |(name, _)| name));
    set(&mut event.principal, &record.principal);
    set(&mut event.issuer, &record.issuer);
    set(&mut event.subject, &record.subject);
    set(&mut event.client_address, record.client_address());
    set(&mut event.method, &record.method);
    set(&mut event.capability, &record.capability);
    event.wire_status.clear();
    match record.wire_status {
        Some(status) => digits(status.into(), &mut event.wire_status),
        None => event.wire_status.push_str("unknown"),
    }
    event.decision_us = micros(record.decision_time);
    event.duration_us = read.then(|| micros(record.duration));
    event.entries_hidden = record.entries_hidden;
    set(&mut event.detail, record.log.as_deref().unwrap_or_default());
    set(&mut event.screened, record.screened.map(|(action, _)| action.as_str()).unwrap_or_default());
    set(&mut event.screened_reason, record.screened.map(|(_, why)| why).unwrap_or_default());
    set(&mut event.gate, record.gate.as_ref().map_or("", |gate| &gate.name));
    event.would_refuse = record.would_refuse;
    set(&mut event.trace_id, trace_id);
    event.rules.clear();
    event.rules.extend_from_slice(&record.rules);
}

/// Most bytes of memory that one text of an event keeps for the next.
const KEPT: usize = 1024;

fn set(text: &mut String, to: &str) {
    text.clear();
    if text.capacity() > KEPT {
        text.shrink_to(KEPT);
    }
    text.push_str(to);
}

/// Writes times, and the calendar only once for those of one second.
#[derive(Default)]
pub(super) struct Stamp {
    second: Option<u64>,
    /// That second, without what follows.
    text: String,
}

impl Stamp {
    /// RFC 3339 in UTC with microseconds.
    pub(super) fn write(&mut self, out: &mut String, at: SystemTime) {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.second != Some(since.as_secs()) {
            self.text =
                humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs()))
                    .to_string();
            self.text.truncate(self.text.trim_end_matches('Z').len());
            self.second = Some(since.as_secs());
        }
        set(out, &self.text);
        out.push('.');
        let mut unit = 100_000;
        while unit > 0 {
            out.push(digit(u64::from(since.subsec_micros()) / unit));
            unit /= 10;
        }
        out.push('Z');
    }
}

/// The last digit of a number.
fn digit(number: u64) -> char {
    u32::try_from(number % 10).ok().and_then(|digit| char::from_digit(digit, 10)).unwrap_or('0')
}

/// Appends a number in decimal.
fn digits(number: u64, out: &mut String) {
    let mut unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0));
    while unit > 0 {
        out.push(digit(number / unit));
        unit /= 10;
    }
}

/// Names of one member: in the contract, as a JSON key with its colon, as an OTLP attribute.
#[derive(Clone, Copy)]
pub(super) struct Member {
    json: &'static str,
    /// `None`: it has a field of its own in a log record.
    pub(super) otlp: Option<&'static str>,
}

macro_rules! member {
    ($name:literal) => {
        member!($name, Some(concat!("portcullis.", $name)))
    };
    ($name:literal, $otlp:expr) => {
        Member { json: concat!("\"", $name, "\":"), otlp: $otlp }
    };
}

/// The members that are text, in the order of the line.
pub(super) fn texts(event: &AuditEvent) -> [(Member, &str); 19] {
    [
        (member!("schema"), &event.schema),
        (member!("decision_id"), &event.decision_id),
        (member!("time", None), &event.time),
        (member!("decision"), &event.decision),
        (member!("reason"), &event.reason),
        (member!("rung"), &event.rung),
        (member!("server"), &event.server),
        (member!("principal"), &event.principal),
        (member!("issuer"), &event.issuer),
        (member!("subject"), &event.subject),
        (member!("client_address", Some("client.address")), &event.client_address),
        (member!("method", Some("mcp.method.name")), &event.method),
        (member!("capability"), &event.capability),
        (member!("wire_status"), &event.wire_status),
        (member!("detail"), &event.detail),
        (member!("screened"), &event.screened),
        (member!("screened_reason"), &event.screened_reason),
        (member!("gate"), &event.gate),
        (member!("trace_id"), &event.trace_id),
    ]
}

/// Writes an event as one JSON line: members without a value are left out, numbers and booleans are always there.
pub fn write_line(event: &AuditEvent, out: &mut Vec<u8>) {
    out.push(b'{');
    for (member, text) in texts(event).into_iter().filter(|(_, text)| !text.is_empty()) {
        out.extend_from_slice(member.json.as_bytes());
        write::string(out, text);
        out.push(b',');
    }
    let mut scratch = String::new();
    let mut number = |name: &str, number: u64, out: &mut Vec<u8>| {
        scratch.clear();
        digits(number, &mut scratch);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(scratch.as_bytes());
    };
    list(out, "rules", &event.rules, |rule, out| number("", u64::from(*rule), out));
    list(out, "would_refuse", &event.would_refuse, |code, out| write::string(out, code));
    out.extend_from_slice(if event.enforced { b"\"enforced\":true" } else { b"\"enforced\":false" });
    number(r#","decision_us":"#, event.decision_us, out);
    if let Some(duration) = event.duration_us {
        number(r#","duration_us":"#, duration, out);
    }
    if event.entries_hidden > 0 {
        number(r#","entries_hidden":"#, event.entries_hidden, out);
    }
    out.extend_from_slice(b"}\n");
}

fn list<T>(out: &mut Vec<u8>, name: &str, items: &[T], mut one: impl FnMut(&T, &mut Vec<u8>)) {
    if items.is_empty() {
        return;
    }
    write::string(out, name);
    out.extend_from_slice(b":[");
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        one(item, out);
    }
    out.extend_from_slice(b"],");
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
