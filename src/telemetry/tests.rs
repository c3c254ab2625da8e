use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::audit::{Audit, Outcome, Record, Screened, write_line};
use super::counters::{Counters, Sample};
use crate::protocol::Method;
use crate::refusal::frame::Tier;
use crate::refusal::{Reason, Rung};

fn record() -> Record {
    let mut record = Record::new("d1".to_owned());
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

fn line(record: Record) -> String {
    let mut line = Vec::new();
    write_line(&record.event(SystemTime::UNIX_EPOCH + Duration::from_micros(1_796_000_000_123_456)), &mut line);
    String::from_utf8(line).unwrap()
}

fn value(samples: &[Sample], name: &str, labels: &[&str]) -> Option<u64> {
    let fits = |sample: &&Sample| {
        sample.name == name && labels.iter().all(|label| sample.labels.iter().any(|(_, value)| value == label))
    };
    samples.iter().find(fits).map(|sample| sample.value)
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

#[test]
fn decisions_are_counted_under_closed_labels() {
    let counters = Counters::new(vec!["cases".into(), "other".into()]);
    counters.decided(&record());
    counters.decided(&record());
    let mut unlisted = record();
    (unlisted.listed, unlisted.server, unlisted.tier) = (None, None, Tier::Minimal);
    unlisted.method = "made/up".into();
    counters.decided(&unlisted);
    let mut allowed = record();
    (allowed.reason, allowed.outcome, allowed.server) = (None, Outcome::Allowed, Some(("other".into(), 1)));
    allowed.entries_hidden = 3;
    counters.decided(&allowed);
    let samples = counters.samples();
    let decisions = |labels: &[&str]| value(&samples, "portcullis.decisions", labels);
    assert_eq!(decisions(&["cases", "tools/call", "refuse", "policy.unpriced"]), Some(2));
    assert_eq!(decisions(&["_none", "_other", "refuse", "policy.unpriced"]), Some(1));
    assert_eq!(decisions(&["other", "tools/call", "allow"]), Some(1));
    assert_eq!(decisions(&["made/up"]), None);
    assert_eq!(value(&samples, "portcullis.listing.entries_hidden", &[]), Some(3));
    assert_eq!(value(&samples, "portcullis.render.fallbacks", &["minimal"]), Some(1));
    assert_eq!(value(&samples, "portcullis.render.fallbacks", &["constant"]), Some(0));
}

#[test]
fn streams_are_bounded_and_what_is_beyond_is_counted() {
    let counters = Counters::new(Vec::new());
    assert!(counters.stream_opened(1));
    assert!(!counters.stream_opened(1));
    counters.stream_closed();
    assert!(counters.stream_opened(1));
    let samples = counters.samples();
    assert_eq!(value(&samples, "portcullis.streams.open", &[]), Some(1));
    assert_eq!(value(&samples, "portcullis.streams.refused", &[]), Some(1));
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
    let counters = Arc::new(Counters::new(vec!["cases".into()]));
    let sink = Gated { leave, written: Arc::clone(&written) };
    let (audit, writer) = Audit::start(Some(Box::new(sink)), Arc::clone(&counters)).unwrap();
    for _ in 0..RECORDS {
        audit.emit(record(), SystemTime::UNIX_EPOCH);
    }
    for _ in 0..RECORDS {
        allow.send(()).unwrap();
    }
    drop(audit);
    writer.unwrap().join().unwrap();
    let lines = String::from_utf8_lossy(&written.lock().unwrap()).lines().count();
    let dropped = value(&counters.samples(), "portcullis.audit.dropped", &[]).unwrap();
    assert!(dropped > 0, "the queue is bounded");
    assert_eq!(lines as u64 + dropped, RECORDS as u64);
}
