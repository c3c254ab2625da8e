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

    /// The record under its contract. `trace_id` is that of the span which tells of it, where there is one.
    #[must_use]
    pub fn event(self, at: SystemTime, trace_id: Option<String>) -> AuditEvent {
        let read = self.wire_status.is_some();
        let trace_id = trace_id.or_else(|| self.parent.as_ref().map(|parent| parent.trace_hex())).unwrap_or_default();
        AuditEvent {
            schema: SCHEMA.to_owned(),
            time: humantime::format_rfc3339_micros(at).to_string(),
            decision: self.outcome.as_str().to_owned(),
            reason: self.reason_text().to_owned(),
            decision_id: self.id,
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
            trace_id,
            rules: self.rules.to_vec(),
        }
    }
}

/// The members that are text, by name.
pub(super) fn texts(event: &AuditEvent) -> [(&'static str, &String); 18] {
    [
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
        ("trace_id", &event.trace_id),
    ]
}

/// Writes an event as one JSON line: members without a value are left out, numbers and booleans are always there.
pub fn write_line(event: &AuditEvent, out: &mut Vec<u8>) {
    out.push(b'{');
    for (name, text) in texts(event).iter().filter(|(_, text)| !text.is_empty()) {
        write::string(out, name);
        out.push(b':');
        write::string(out, text);
        out.push(b',');
    }
    list(out, "rules", &event.rules, |rule, out| out.extend_from_slice(rule.to_string().as_bytes()));
    list(out, "would_refuse", &event.would_refuse, |code, out| write::string(out, code));
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

fn list<T>(out: &mut Vec<u8>, name: &str, items: &[T], one: impl Fn(&T, &mut Vec<u8>)) {
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
