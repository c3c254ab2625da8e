use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message as _;

use super::event::{Stamp, fill};
use super::{Audit, Outcome, Outlets, Record, Screened, Sink, logs, write_line};
use crate::message::trace::TraceContext;
use crate::telemetry::contract::AuditEvent;
use crate::telemetry::counters::Counters;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::settings::WhenFull;
use crate::telemetry::testing::{record, value};
use crate::telemetry::traces::Place;

fn line(record: Record) -> String {
    let mut line = Vec::new();
    write_line(&record.event(SystemTime::UNIX_EPOCH + Duration::from_micros(1_796_000_000_123_456), None), &mut line);
    String::from_utf8(line).unwrap()
}

/// An audit that writes to these sinks and nowhere else.
fn start(sinks: Vec<Sink>, when_full: WhenFull) -> (Audit, Arc<Counters>, std::thread::JoinHandle<()>) {
    let counters = Arc::new(Counters::new(vec!["cases".into()]));
    let resource = opentelemetry_sdk::Resource::builder_empty().build();
    let metrics = Arc::new(Metrics::start(&counters, resource, None, 2000).unwrap());
    let outlets = Outlets { counters: Arc::clone(&counters), metrics, sinks, spans: None, logs: None, recent: None };
    let (audit, writer) = Audit::start(outlets, when_full).unwrap();
    (audit, counters, writer)
}

/// Hands a record over as the front door does; `false` when the call is refused for want of room.
fn call(audit: &Audit) -> bool {
    let slot = audit.admit();
    let admitted = slot.is_some();
    audit.emit(record(), SystemTime::UNIX_EPOCH, slot.unwrap_or_default());
    admitted
}

#[test]
fn an_audit_line_has_exactly_these_bytes() {
    assert_eq!(
        line(record()),
        concat!(
            r#"{"schema":"portcullis.audit.v1","decision_id":"d1","time":"2026-11-30T00:53:20.123456Z","#,
            r#""decision":"refuse","reason":"policy.unpriced","rung":"permission","server":"cases","#,
            r#""principal":"ana@acme.com","method":"tools/call","capability":"tool:a\"b","wire_status":"200","#,
            r#""enforced":true,"decision_us":12,"duration_us":34}"#,
            "\n"
        )
    );
}

#[test]
fn what_was_not_ours_to_read_is_said_to_be_unknown() {
    let mut unread = record();
    (unread.outcome, unread.reason, unread.rung, unread.wire_status) = (Outcome::Allowed, None, None, None);
    let line = line(unread);
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(parsed["wire_status"], "unknown");
    assert!(parsed.get("duration_us").is_none() && parsed.get("reason").is_none(), "{line}");
}

#[test]
fn what_was_done_about_an_answer_is_written_and_counted() {
    let counters = Counters::new(vec!["cases".into()]);
    for (action, count) in [(Screened::Counted, 1), (Screened::Notice, 2), (Screened::Withheld, 3)] {
        let mut screened = record();
        screened.screened = Some((action, "why it was"));
        (0..count).for_each(|_| counters.decided(&screened));
        let parsed: serde_json::Value = serde_json::from_str(&line(screened)).unwrap();
        assert_eq!((&parsed["screened"], &parsed["screened_reason"]), (&action.as_str().into(), &"why it was".into()));
        let samples = counters.samples();
        assert_eq!(value(&samples, "portcullis.screened", &["cases", action.as_str()]), Some(count));
    }
    let mut nobody = record();
    (nobody.server, nobody.screened) = (None, Some((Screened::Notice, "")));
    counters.decided(&nobody);
    assert_eq!(value(&counters.samples(), "portcullis.screened", &["_none", "notice"]), Some(1));
}

/// A sink that waits for leave before each write.
struct Gated {
    leave: Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.leave.recv().map_err(std::io::Error::other)?;
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_reader_of_the_audit_delays_nobody_and_every_record_is_written_or_counted() {
    const RECORDS: usize = 40_000;
    let (allow, leave): (Sender<()>, _) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Gated { leave, written: Arc::clone(&written) };
    let (audit, counters, writer) = start(vec![Sink::stream(Box::new(sink))], WhenFull::Drop);
    (0..RECORDS).for_each(|_| assert!(call(&audit)));
    for _ in 0..RECORDS {
        allow.send(()).unwrap();
    }
    audit.stop();
    writer.join().unwrap();
    let lines = String::from_utf8_lossy(&written.lock().unwrap()).lines().count();
    let dropped = value(&counters.samples(), "portcullis.audit.dropped", &["queue"]).unwrap();
    assert!(dropped > 0, "the queue is bounded");
    assert_eq!(lines as u64 + dropped, RECORDS as u64);
}

#[test]
fn with_refuse_a_call_that_was_admitted_always_finds_room() {
    const CALLS: usize = 40_000;
    let (allow, leave): (Sender<()>, _) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Gated { leave, written: Arc::clone(&written) };
    let (audit, counters, writer) = start(vec![Sink::stream(Box::new(sink))], WhenFull::Refuse);
    // Under way before the flood, and over after it.
    let early = audit.admit().expect("room for the first");
    let admitted = 1 + (0..CALLS).filter(|_| call(&audit)).count();
    assert!(admitted < CALLS, "what could not be kept is refused");
    audit.emit(record(), SystemTime::UNIX_EPOCH, early);
    for _ in 0..=CALLS {
        allow.send(()).unwrap();
    }
    audit.stop();
    writer.join().unwrap();
    let lines = String::from_utf8_lossy(&written.lock().unwrap()).lines().count();
    let dropped = value(&counters.samples(), "portcullis.audit.dropped", &["queue"]).unwrap();
    assert!(lines >= admitted, "{lines} lines of {admitted} admitted calls");
    assert_eq!(lines as u64 + dropped, CALLS as u64 + 1, "the rest are events of refused calls, and counted");
}

#[test]
fn a_slot_is_given_back_when_its_call_leaves_no_record() {
    let (audit, _, writer) = start(Vec::new(), WhenFull::Refuse);
    for _ in 0..100_000 {
        drop(audit.admit().expect("room"));
    }
    audit.stop();
    writer.join().unwrap();
}

/// A disk that is full until it is not.
struct Full {
    full: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut written = self.written.lock().unwrap();
        if self.full.load(Ordering::Relaxed) {
            // As a disk does: a part of it still fits, once.
            let fits = 10_usize.saturating_sub(written.len());
            written.extend_from_slice(&bytes[..fits]);
            return if fits > 0 { Ok(fits) } else { Err(std::io::ErrorKind::StorageFull.into()) };
        }
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn full() -> (Full, Arc<AtomicBool>, Arc<Mutex<Vec<u8>>>) {
    let (full, written) = (Arc::new(AtomicBool::new(true)), Arc::<Mutex<Vec<u8>>>::default());
    (Full { full: Arc::clone(&full), written: Arc::clone(&written) }, full, written)
}

#[test]
fn with_refuse_a_full_disk_refuses_calls_until_it_has_room_and_loses_nothing() {
    let (disk, full, written) = full();
    let (audit, counters, writer) = start(vec![Sink::stream(Box::new(disk))], WhenFull::Refuse);
    assert!(call(&audit));
    until("the fault is noticed and calls are refused", || audit.admit().is_none());
    full.store(false, Ordering::Relaxed);
    until("calls are admitted again", || audit.admit().is_some());
    assert!(call(&audit));
    audit.stop();
    writer.join().unwrap();
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let parsed = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
    assert_eq!((parsed, text.lines().count()), (2, 2), "{text}");
    assert_eq!(value(&counters.samples(), "portcullis.audit.dropped", &["stdout"]), Some(0));
}

#[test]
fn with_drop_a_full_disk_is_counted_and_cuts_no_later_line() {
    let (disk, full, written) = full();
    let (audit, counters, writer) = start(vec![Sink::stream(Box::new(disk))], WhenFull::Drop);
    assert!(call(&audit));
    let lost = || value(&counters.samples(), "portcullis.audit.dropped", &["stdout"]);
    until("the loss is counted", || lost() == Some(1));
    full.store(false, Ordering::Relaxed);
    assert!(call(&audit));
    audit.stop();
    writer.join().unwrap();
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let parsed = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
    assert_eq!((parsed, text.lines().count(), lost()), (1, 2, Some(1)), "{text}");
}

#[test]
fn a_file_that_is_rotated_goes_on_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (file, rotated) = (dir.path().join("audit.jsonl"), dir.path().join("audit.1"));
    let (audit, _, writer) = start(vec![Sink::file(&file).unwrap()], WhenFull::Drop);
    let lines = |path: &std::path::Path| std::fs::read_to_string(path).map_or(0, |text| text.lines().count());
    assert!(call(&audit));
    until("the first line", || lines(&file) == 1);
    std::fs::rename(&file, &rotated).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert!(call(&audit));
    until("the second line, in a new file", || lines(&file) == 1);
    assert_eq!(lines(&rotated), 1);
    audit.stop();
    writer.join().unwrap();
}

#[test]
fn the_trace_and_the_rules_are_told() {
    let mut traced = record();
    traced.rules = [0, 3].into();
    traced.parent = Some(Box::new(TraceContext { trace_id: 0xab, span_id: 1, sampled: true, state: "".into() }));
    let parsed: serde_json::Value = serde_json::from_str(&line(traced)).unwrap();
    assert_eq!(parsed["trace_id"], format!("{:032x}", 0xab));
    assert_eq!(parsed["rules"], serde_json::json!([0, 3]));
}

#[test]
fn times_are_written_as_humantime_writes_them() {
    let mut stamp = Stamp::default();
    let mut own = "what was there before".to_owned();
    for micros in [
        0,
        1,
        999_999,
        1_000_000,
        951_782_399_999_999,
        951_782_400_000_000,
        1_796_000_000_123_456,
        1_796_000_000_123_457,
    ] {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        stamp.write(&mut own, at);
        assert_eq!(own, humantime::format_rfc3339_micros(at).to_string());
    }
}

#[test]
fn an_event_says_nothing_of_the_one_whose_memory_it_uses() {
    let full = || {
        let mut full = record();
        (full.issuer, full.subject, full.rules) = ("https://issuer".into(), "s".into(), [1, 2].into());
        full.source = Some("192.0.2.7:51234".to_owned());
        (full.log, full.screened) = (Some("x".repeat(5000)), Some((Screened::Notice, "why")));
        (full.would_refuse, full.entries_hidden) = (vec!["policy.unpriced".to_owned()], 3);
        full
    };
    let bare = || Record::new("d2".to_owned(), std::time::Instant::now());
    let (mut event, mut stamp, at) = (AuditEvent::default(), Stamp::default(), SystemTime::UNIX_EPOCH);
    fill(&mut event, full(), &mut stamp, at, "0af7651916cd43dd8448eb211c80319c");
    fill(&mut event, bare(), &mut stamp, at, "");
    assert_eq!(event, bare().event(at, None));
    fill(&mut event, full(), &mut stamp, at, "ab");
    assert_eq!(event, full().event(at, Some("ab".to_owned())));
}

#[test]
fn where_a_call_came_from_is_said_without_the_port() {
    let mut one = record();
    for (source, told) in [
        ("192.0.2.7:51234", "192.0.2.7"),
        // What Envoy takes from x-forwarded-for has no port, which it writes as 0.
        ("192.0.2.7:0", "192.0.2.7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("/run/agent.sock", "/run/agent.sock"),
        ("/run/a:b", "/run/a:b"),
    ] {
        one.source = Some(source.to_owned());
        assert_eq!(one.client_address(), told, "{source}");
    }
    let parsed: serde_json::Value = serde_json::from_str(&line(one)).unwrap();
    assert_eq!(parsed["client_address"], "/run/a:b");
    let unsaid: serde_json::Value = serde_json::from_str(&line(record())).unwrap();
    assert_eq!(unsaid.get("client_address"), None);
}

#[test]
fn numbers_are_written_as_they_are() {
    let mut most = record();
    (most.entries_hidden, most.duration) = (u64::MAX, Duration::from_micros(1_234_567_890));
    (most.wire_status, most.decision_time) = (Some(503), Duration::ZERO);
    let parsed: serde_json::Value = serde_json::from_str(&line(most)).unwrap();
    assert_eq!((&parsed["entries_hidden"], &parsed["duration_us"]), (&u64::MAX.into(), &1_234_567_890_u64.into()));
    assert_eq!((&parsed["wire_status"], &parsed["decision_us"]), (&"503".into(), &0.into()));
}

/// A log record as the collector gets it.
fn exported(record: Record, place: Option<Place>) -> LogRecord {
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_796_000_000_123_456_789);
    let mut encoded = Vec::new();
    logs::record(&mut encoded, &record.event(at, None), at, place);
    LogRecord::decode(encoded.as_slice()).unwrap()
}

#[test]
fn a_log_record_has_exactly_this() {
    let mut one = record();
    (one.rules, one.would_refuse, one.entries_hidden) = ([0, 3].into(), vec!["a.b".to_owned(), "c.d".to_owned()], 2);
    let place = Place { trace: 0xab, span: 0xcd, sampled: true };
    let any = |value| AnyValue { value: Some(value) };
    let pair = |key: &str, value| KeyValue { key: key.to_owned(), value: Some(any(value)), key_strindex: 0 };
    let text = |text: &str| Value::StringValue(text.to_owned());
    let list = |values: Vec<Value>| Value::ArrayValue(ArrayValue { values: values.into_iter().map(any).collect() });
    let expected = LogRecord {
        time_unix_nano: 1_796_000_000_123_456_789,
        observed_time_unix_nano: 1_796_000_000_123_456_789,
        severity_number: 13,
        severity_text: "WARN".to_owned(),
        body: Some(any(text("refuse policy.unpriced tools/call tool:a\"b"))),
        attributes: vec![
            pair("portcullis.schema", text("portcullis.audit.v1")),
            pair("portcullis.decision_id", text("d1")),
            pair("portcullis.decision", text("refuse")),
            pair("portcullis.reason", text("policy.unpriced")),
            pair("portcullis.rung", text("permission")),
            pair("portcullis.server", text("cases")),
            pair("portcullis.principal", text("ana@acme.com")),
            pair("mcp.method.name", text("tools/call")),
            pair("portcullis.capability", text("tool:a\"b")),
            pair("portcullis.wire_status", text("200")),
            pair("portcullis.enforced", Value::BoolValue(true)),
            pair("portcullis.decision_us", Value::IntValue(12)),
            pair("portcullis.duration_us", Value::IntValue(34)),
            pair("portcullis.entries_hidden", Value::IntValue(2)),
            pair("portcullis.rules", list(vec![Value::IntValue(0), Value::IntValue(3)])),
            pair("portcullis.would_refuse", list(vec![text("a.b"), text("c.d")])),
        ],
        flags: 1,
        trace_id: 0xab_u128.to_be_bytes().to_vec(),
        span_id: 0xcd_u64.to_be_bytes().to_vec(),
        event_name: "portcullis.decision".to_owned(),
        ..LogRecord::default()
    };
    assert_eq!(exported(one, Some(place)), expected);
    let mut allowed = record();
    (allowed.outcome, allowed.reason) = (Outcome::Allowed, None);
    let log = exported(allowed, None);
    assert_eq!((log.severity_number, log.severity_text.as_str(), log.trace_id.len()), (9, "INFO", 0));
}
