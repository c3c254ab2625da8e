//! Audit events as OTLP log records, exported in batches by a thread of its own.
//!
//! The SDK's batch processor drops silently; here every record is exported, counted as dropped, or, with
//! [`WhenFull::Refuse`], kept until the collector takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry::trace::SpanContext;
use opentelemetry::{InstrumentationScope, Key, SpanId, TraceFlags, TraceId};
use opentelemetry_otlp::LogExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{LogBatch, LogExporter as _, SdkLogRecord, SdkLogger, SdkLoggerProvider};

use super::event::texts;
use crate::message::trace::TraceContext;
use crate::telemetry::contract::AuditEvent;
use crate::telemetry::counters::{Counters, Lost};
use crate::telemetry::otlp::variable;
use crate::telemetry::settings::WhenFull;

/// Name of the event, and of the scope it comes from.
const EVENT: &str = "portcullis.decision";
const RETRY: Duration = Duration::from_millis(500);

/// The way to the exporting thread.
pub(in crate::telemetry) struct Logs {
    queue: SyncSender<SdkLogRecord>,
    logger: SdkLogger,
    when_full: WhenFull,
    closing: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The exporting thread.
struct Exporting {
    exporter: LogExporter,
    runtime: tokio::runtime::Handle,
    scope: InstrumentationScope,
    counters: Arc<Counters>,
    when_full: WhenFull,
    closing: Arc<AtomicBool>,
    /// `OTEL_BLRP_SCHEDULE_DELAY`, `OTEL_BLRP_MAX_EXPORT_BATCH_SIZE`.
    delay: Duration,
    batch: usize,
    /// Whether the collector's fault was told, and has not gone since.
    told: bool,
}

impl Logs {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(in crate::telemetry) fn start(
        mut exporter: LogExporter,
        resource: &Resource,
        runtime: tokio::runtime::Handle,
        counters: Arc<Counters>,
        when_full: WhenFull,
    ) -> std::io::Result<Self> {
        exporter.set_resource(resource);
        let number = |name, default| variable(name).and_then(|text| text.parse().ok()).unwrap_or(default);
        let waiting = number("OTEL_BLRP_MAX_QUEUE_SIZE", 2048).clamp(1, 1 << 20);
        let (queue, records) = sync_channel(usize::try_from(waiting).unwrap_or(2048));
        let closing = Arc::<AtomicBool>::default();
        let exporting = Exporting {
            exporter,
            runtime,
            scope: InstrumentationScope::builder("portcullis").build(),
            counters,
            when_full,
            closing: Arc::clone(&closing),
            delay: Duration::from_millis(number("OTEL_BLRP_SCHEDULE_DELAY", 1000)),
            batch: usize::try_from(number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512).clamp(1, 1 << 16)).unwrap_or(512),
            told: false,
        };
        let thread =
            std::thread::Builder::new().name("audit-otlp".to_owned()).spawn(move || exporting.run(&records))?;
        let logger = SdkLoggerProvider::builder().build().logger("portcullis");
        Ok(Self { queue, logger, when_full, closing, thread })
    }

    /// Hands an event over; `false` when there is no room for it. With [`WhenFull::Refuse`] it waits for room, unless
    /// the process is stopping.
    pub(super) fn push(
        &self,
        event: &AuditEvent,
        at: SystemTime,
        span: Option<&SpanContext>,
        parent: Option<&TraceContext>,
        closing: impl Fn() -> bool,
    ) -> bool {
        let mut record = self.record(event, at);
        match (span, parent) {
            (Some(span), _) => record.set_trace_context(span.trace_id(), span.span_id(), Some(span.trace_flags())),
            (None, Some(parent)) => {
                let flags = TraceFlags::default().with_sampled(parent.sampled);
                let (trace, span) = (TraceId::from(parent.trace_id), SpanId::from(parent.span_id));
                record.set_trace_context(trace, span, Some(flags));
            }
            (None, None) => {}
        }
        loop {
            match self.queue.try_send(record) {
                Ok(()) => return true,
                Err(TrySendError::Full(back)) if self.when_full == WhenFull::Refuse && !closing() => {
                    record = back;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(_) => return false,
            }
        }
    }

    fn record(&self, event: &AuditEvent, at: SystemTime) -> SdkLogRecord {
        let mut record = self.logger.create_log_record();
        record.set_event_name(EVENT);
        record.set_timestamp(at);
        record.set_observed_timestamp(at);
        let refused = event.decision == "refuse" || !event.enforced;
        let severity = if refused { Severity::Warn } else { Severity::Info };
        record.set_severity_number(severity);
        record.set_severity_text(severity.name());
        record.set_body(AnyValue::from(body(event)));
        for (name, text) in texts(event).into_iter().filter(|(name, text)| !text.is_empty() && *name != "time") {
            match name {
                "method" => record.add_attribute("mcp.method.name", text.clone()),
                name => record.add_attribute(Key::from(format!("portcullis.{name}")), text.clone()),
            }
        }
        record.add_attribute("portcullis.enforced", event.enforced);
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        record.add_attribute("portcullis.decision_us", number(event.decision_us));
        if let Some(duration) = event.duration_us {
            record.add_attribute("portcullis.duration_us", number(duration));
        }
        if event.entries_hidden > 0 {
            record.add_attribute("portcullis.entries_hidden", number(event.entries_hidden));
        }
        if !event.rules.is_empty() {
            let rules = event.rules.iter().map(|rule| AnyValue::Int(i64::from(*rule))).collect::<Vec<_>>();
            record.add_attribute("portcullis.rules", AnyValue::ListAny(Box::new(rules)));
        }
        if !event.would_refuse.is_empty() {
            let codes = event.would_refuse.iter().map(|code| AnyValue::from(code.clone())).collect::<Vec<_>>();
            record.add_attribute("portcullis.would_refuse", AnyValue::ListAny(Box::new(codes)));
        }
        record
    }

    /// Ends the thread once what it was handed is exported or given up.
    pub(super) fn close(self) {
        self.closing.store(true, Ordering::Relaxed);
        drop(self.queue);
        let _ = self.thread.join();
    }
}

/// The event in words, for a person who looks at log bodies.
fn body(event: &AuditEvent) -> String {
    let words = [&event.decision, &event.reason, &event.method, &event.capability];
    words.into_iter().filter(|word| !word.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ")
}

impl Exporting {
    fn run(mut self, records: &Receiver<SdkLogRecord>) {
        while let Ok(first) = records.recv() {
            let mut batch = vec![first];
            let due = Instant::now() + self.delay;
            while batch.len() < self.batch {
                match records.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(record) => batch.push(record),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            self.export(&batch);
        }
    }

    fn export(&mut self, batch: &[SdkLogRecord]) {
        let with_scope: Vec<_> = batch.iter().map(|record| (record, &self.scope)).collect();
        while let Err(fault) = self.runtime.block_on(self.exporter.export(LogBatch::new(&with_scope))) {
            let keep = self.when_full == WhenFull::Refuse && !self.closing.load(Ordering::Relaxed);
            if !std::mem::replace(&mut self.told, true) {
                let becomes = if keep { "they are kept until they are" } else { "they are dropped and counted" };
                tracing::error!(%fault, "audit events cannot be exported; {becomes}");
            }
            if !keep {
                self.counters.lost(Lost::Otlp, u64::try_from(batch.len()).unwrap_or(u64::MAX));
                return;
            }
            std::thread::sleep(RETRY);
        }
        if std::mem::take(&mut self.told) {
            tracing::info!("audit events are exported again");
        }
    }
}
