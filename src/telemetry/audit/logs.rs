//! Audit events as OTLP log records, exported in batches by a thread of its own.
//!
//! Every event is exported, counted as dropped, or, with [`WhenFull::Refuse`], kept until the collector takes it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;

use super::event::texts;
use crate::message::protobuf::{bytes, fixed32, fixed64, message, number};
use crate::telemetry::contract::AuditEvent;
use crate::telemetry::counters::{Counters, Lost};
use crate::telemetry::otlp::client::Client;
use crate::telemetry::otlp::encode::{Envelope, Value, attribute, text};
use crate::telemetry::otlp::outbox::{Limits, Losses, Outbox};
use crate::telemetry::settings::WhenFull;
use crate::telemetry::traces::Place;

/// Name of the event.
const EVENT: &str = "portcullis.decision";
/// How long until it is looked again whether there is room.
const ROOM: Duration = Duration::from_millis(10);
/// `SeverityNumber`, and its name.
const INFO: (u64, &str) = (9, "INFO");
const WARN: (u64, &str) = (13, "WARN");
/// The field of `LogRecord` that attributes are in.
const ATTRIBUTES: u8 = 6;

/// The way to the exporting thread.
pub(in crate::telemetry) struct Logs {
    outbox: Outbox,
    when_full: WhenFull,
    encoded: Vec<u8>,
}

impl Logs {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(in crate::telemetry) fn start(
        client: Client,
        envelope: Envelope,
        runtime: Handle,
        counters: Arc<Counters>,
        when_full: WhenFull,
    ) -> std::io::Result<Self> {
        let losses = Losses {
            what: "audit events",
            keep: when_full == WhenFull::Refuse,
            count: Box::new(move |events| counters.lost(Lost::Otlp, events)),
        };
        let limits = Limits::named("OTEL_BLRP", 1000);
        let outbox = Outbox::start("audit-otlp", client, envelope, runtime, limits, losses)?;
        Ok(Self { outbox, when_full, encoded: Vec::new() })
    }

    /// Hands an event over; `false` when there is no room for it. With [`WhenFull::Refuse`] it waits for room, unless
    /// the process is stopping. `place` is that of its span, else of the caller's.
    pub(super) fn push(
        &mut self,
        event: &AuditEvent,
        at: SystemTime,
        place: Option<Place>,
        closing: impl Fn() -> bool,
    ) -> bool {
        self.encoded.clear();
        message(&mut self.encoded, 2, |out| record(out, event, at, place));
        while !self.outbox.put(&self.encoded, 1) {
            if self.when_full != WhenFull::Refuse || closing() {
                return false;
            }
            std::thread::sleep(ROOM);
        }
        true
    }

    /// Lets the exporting thread end once what it was handed is exported or given up.
    pub(super) fn close(&self) {
        self.outbox.close();
    }

    /// Waits for that thread. Call [`Self::close`] before.
    pub(super) fn join(self) {
        self.outbox.join();
    }
}

/// The fields of a `LogRecord`.
pub(super) fn record(out: &mut Vec<u8>, event: &AuditEvent, at: SystemTime, place: Option<Place>) {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let (severity, name) = if event.decision == "refuse" || !event.enforced { WARN } else { INFO };
    fixed64(out, 1, nanos);
    number(out, 2, severity);
    text(out, 3, name);
    message(out, 5, |out| message(out, 1, |out| words(out, event)));
    attributes(out, event);
    if let Some(place) = place {
        fixed32(out, 8, u32::from(place.sampled));
        bytes(out, 9, &place.trace.to_be_bytes());
        bytes(out, 10, &place.span.to_be_bytes());
    }
    fixed64(out, 11, nanos);
    text(out, 12, EVENT);
}

fn attributes(out: &mut Vec<u8>, event: &AuditEvent) {
    for (member, text) in texts(event).into_iter().filter(|(_, text)| !text.is_empty()) {
        if let Some(name) = member.otlp {
            attribute(out, ATTRIBUTES, name, Value::Text(text));
        }
    }
    let mut other = |name, value| attribute(out, ATTRIBUTES, name, value);
    let number = |value: u64| Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
    other("portcullis.enforced", Value::Bool(event.enforced));
    other("portcullis.decision_us", number(event.decision_us));
    if let Some(duration) = event.duration_us {
        other("portcullis.duration_us", number(duration));
    }
    if event.entries_hidden > 0 {
        other("portcullis.entries_hidden", number(event.entries_hidden));
    }
    if !event.rules.is_empty() {
        other("portcullis.rules", Value::Ints(&event.rules));
    }
    if !event.would_refuse.is_empty() {
        other("portcullis.would_refuse", Value::Texts(&event.would_refuse));
    }
}

/// The event in words, for a person who looks at log bodies.
fn words(out: &mut Vec<u8>, event: &AuditEvent) {
    let words = [&event.decision, &event.reason, &event.method, &event.capability];
    for (n, word) in words.into_iter().filter(|word| !word.is_empty()).enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
    }
}
