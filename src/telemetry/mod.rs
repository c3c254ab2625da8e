//! What an operator sees: metrics, traces, the audit event of each decision, logs. The only room that knows OpenTelemetry.
//!
//! ```text
//! request path ── counters (atomics) ───────────────┐
//!      │ record, once per decision                   ├──▶ metrics ──▶ Prometheus text, OTLP
//!      ▼                                             │
//! audit queue ──▶ writer thread ── histograms ───────┘
//!                      ├── spans ──▶ OTLP
//!                      ├── the last refusals ──▶ the admin page
//!                      └── events ──▶ JSON lines on standard output and in a file, OTLP logs
//! ```
//!
//! [`record`] is what exchange and gates fill in; it is plain data. Whatever talks to a collector has a runtime and threads
//! of its own.

pub mod audit;
pub mod counters;
pub mod log;
pub mod metrics;
pub mod otlp;
pub mod recent;
pub mod record;
pub mod settings;
mod traces;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry_sdk::Resource;
use tokio::runtime::Runtime;

use audit::logs::Logs;
use audit::{Audit, Outlets, Sink};
use counters::Counters;
use metrics::Metrics;
use otlp::client::Client;
use otlp::encode::Envelope;
use otlp::{Signal, Target, variable};
use recent::Recent;
use settings::Settings;
use traces::Spans;

/// The contracts of `proto/`, generated.
pub mod contract {
    #![allow(missing_docs, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/portcullis.audit.v1.rs"));
}

/// What is guarded, by name: labels of the recorded capabilities. It bounds the label sets of metrics.
pub type Known = HashMap<Arc<str>, HashSet<Arc<str>>>;

/// The telemetry of one process.
pub struct Telemetry {
    audit: Audit,
    counters: Arc<Counters>,
    metrics: Arc<Metrics>,
    recent: Option<Arc<Recent>>,
    writer: JoinHandle<()>,
    /// Where exporters' connections live; `None` without exporters.
    runtime: Option<Runtime>,
}

/// Why telemetry does not start.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A collector that cannot be exported to.
    #[error(transparent)]
    Otlp(#[from] otlp::Fault),
    /// The metrics' readers.
    #[error(transparent)]
    Metrics(#[from] metrics::Fault),
    /// A thread, or the runtime.
    #[error("cannot start telemetry's threads: {0}")]
    Threads(#[from] std::io::Error),
    /// The audit's file.
    #[error("telemetry.audit.file: cannot open {path}: {fault}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        fault: std::io::Error,
    },
}

impl Telemetry {
    /// Starts everything that `settings` and the `OTEL_*` variables ask for. `known` is what the configuration names.
    ///
    /// # Errors
    /// [`Fault`]: something asked for cannot be had. A collector that does not answer is no fault.
    pub fn start(settings: &Settings, known: &Known) -> Result<Self, Fault> {
        let target = |signal| Target::resolve(signal, settings.otlp.as_ref(), &variable);
        let to = [target(Signal::Metrics)?, target(Signal::Traces)?, target(Signal::Logs)?];
        let runtime = to.iter().any(Option::is_some).then(runtime).transpose()?;
        // Channels belong to the runtime within which they are made.
        let entered = runtime.as_ref().map(|runtime| (runtime.enter(), runtime.handle().clone()));
        let handle = entered.as_ref().map(|(_, handle)| handle);
        let [metrics_to, spans_to, logs_to] = to.each_ref().map(|to| to.as_ref().zip(handle));
        let resource = resource();
        let counters = Arc::new(Counters::new(known.keys().cloned().collect()));
        let exporter = metrics_to.map(|(to, handle)| otlp::metrics(to, handle)).transpose()?;
        let envelope = Envelope::new(&resource);
        let metrics = Arc::new(Metrics::start(&counters, resource, exporter, series(known))?);
        let spans = match spans_to {
            None => None,
            Some((to, handle)) => {
                Some(Spans::start(Client::new(Signal::Traces, to)?, envelope.clone(), handle.clone())?)
            }
        };
        let logs = match logs_to {
            None => None,
            Some((to, handle)) => {
                let (client, lost) = (Client::new(Signal::Logs, to)?, Arc::clone(&counters));
                Some(Logs::start(client, envelope, handle.clone(), lost, settings.when_full)?)
            }
        };
        drop(entered);
        let recent = settings.recent.then(Arc::<Recent>::default);
        let outlets = Outlets {
            counters: Arc::clone(&counters),
            metrics: Arc::clone(&metrics),
            sinks: sinks(settings)?,
            spans,
            logs,
            recent: recent.clone(),
        };
        let (audit, writer) = Audit::start(outlets, settings.when_full)?;
        Ok(Self { audit, counters, metrics, recent, writer, runtime })
    }

    /// Where records go.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The counters of the request path.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// All metrics.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The last refusals; `None` unless [`Settings::recent`] asked for them.
    #[must_use]
    pub fn recent(&self) -> Option<&Arc<Recent>> {
        self.recent.as_ref()
    }

    /// Writes what is queued, exports what is left, and ends; at most `patience`. Call it last, after the drain. Blocks.
    pub fn shutdown(self, patience: Duration) {
        let Self { audit, metrics, writer, runtime, .. } = self;
        let (done, ended) = std::sync::mpsc::channel();
        let flush = move || {
            audit.stop();
            let _ = writer.join();
            metrics.shutdown();
            let _ = done.send(());
        };
        // A thread of its own, because a collector that hangs must not hold up the end.
        let started = std::thread::Builder::new().name("telemetry-flush".to_owned()).spawn(flush);
        if started.is_err() || ended.recv_timeout(patience).is_err() {
            tracing::warn!("telemetry could not be flushed within {patience:?}; what is left is lost");
        }
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// One thread for all connections to collectors.
fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("telemetry").enable_all().build()
}

/// Who tells. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win over what is said here.
fn resource() -> Resource {
    let named = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.name="));
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let builder = Resource::builder().with_attribute(version);
    if named { builder.build() } else { builder.with_service_name("portcullis").build() }
}

/// Label sets that one metric may have: per capability a few outcomes and methods, per server every reason. The configuration
/// bounds them already; this has room for what reloads add.
fn series(known: &Known) -> usize {
    known.values().map(|labels| labels.len().saturating_mul(32).saturating_add(256)).fold(16_384, usize::saturating_add)
}

fn sinks(settings: &Settings) -> Result<Vec<Sink>, Fault> {
    let mut sinks = Vec::new();
    if settings.stdout {
        sinks.push(Sink::stream(Box::new(std::io::stdout())));
    }
    if let Some(path) = &settings.file {
        let fault = |fault| Fault::File { path: path.display().to_string(), fault };
        sinks.push(Sink::file(path).map_err(fault)?);
    }
    Ok(sinks)
}
