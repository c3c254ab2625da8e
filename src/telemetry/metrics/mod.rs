//! Metrics: the counters of the request path, histograms of what the audit writer sees, and sources that others register,
//! read two ways: as OTLP exports where a collector is named, and as Prometheus text always.

mod bound;
mod catalog;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider as _};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream};

pub use catalog::{CATALOG, DECISION_DURATION, GATE_CALLS, GATE_DURATION, Kind, Metric, OPERATION_DURATION};

use super::counters::{Counters, NONE, OTHER, Sample};

use super::record::{Outcome, Record};
use crate::protocol::Method;
use bound::Bound;

/// Seconds: OpenTelemetry's conventions for MCP.
const OPERATION_BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// Seconds: a decision takes microseconds, unless somebody has to be asked.
const DECISION_BUCKETS: [f64; 16] =
    [5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1.0, 5.0];
/// JSON-RPC codes of a server's errors that become labels: JSON-RPC's, MCP's, and the first that is free.
const CODES: [i64; 12] =
    [-32700, -32603, -32602, -32601, -32600, -32042, -32022, -32021, -32020, -32010, -32002, -32000];

/// Reads the samples of somebody who counts by themselves.
pub type Source = Box<dyn Fn() -> Vec<Sample> + Send + Sync>;

/// The metrics of one process.
pub struct Metrics {
    provider: SdkMeterProvider,
    registry: prometheus::Registry,
    sources: Arc<RwLock<Vec<Source>>>,
    bound: Mutex<Bound>,
    gate: Histogram<f64>,
    gate_calls: Counter<u64>,
}

/// The Prometheus reader could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the Prometheus reader cannot be made: {0}")]
pub struct Fault(String);

impl Metrics {
    /// Makes every instrument of [`CATALOG`] and its readers. `series` is the most label sets that any metric may need.
    ///
    /// # Errors
    /// The Prometheus reader cannot be made.
    pub fn start(
        counters: &Arc<Counters>,
        resource: Resource,
        exporter: Option<MetricExporter>,
        series: usize,
    ) -> Result<Self, Fault> {
        let registry = prometheus::Registry::new();
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()
            .map_err(|fault| Fault(fault.to_string()))?;
        // What is bounded by the configuration must not be cut by the SDK's own bound.
        let limit = series.clamp(2000, 1 << 20);
        let mut builder = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_view(move |_: &Instrument| Stream::builder().with_cardinality_limit(limit).build().ok())
            .with_reader(prometheus);
        if let Some(exporter) = exporter {
            builder = builder.with_reader(PeriodicReader::builder(exporter).build());
        }
        let provider = builder.build();
        let meter = provider.meter("portcullis");
        let sources = Arc::<RwLock<Vec<Source>>>::default();
        for metric in CATALOG.iter().filter(|metric| metric.kind != Kind::Histogram && metric.name != GATE_CALLS) {
            observe(&meter, metric, counters, &sources);
        }
        let gate_calls = describe(GATE_CALLS);
        let bound = Bound::new(
            histogram(&meter, DECISION_DURATION, &DECISION_BUCKETS),
            histogram(&meter, OPERATION_DURATION, &OPERATION_BUCKETS),
            limit,
        );
        Ok(Self {
            bound: Mutex::new(bound),
            gate: histogram(&meter, GATE_DURATION, &DECISION_BUCKETS),
            gate_calls: meter
                .u64_counter(GATE_CALLS)
                .with_unit(gate_calls.map_or("", |metric| metric.unit))
                .with_description(gate_calls.map_or("", |metric| metric.description))
                .build(),
            provider,
            registry,
            sources,
        })
    }

    /// Adds somebody who counts by themselves. Their samples' names must be in [`CATALOG`]; others are not told.
    pub fn register(&self, source: Source) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// Everything as Prometheus text (exposition format 0.0.4).
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        if let Err(fault) = prometheus::TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(%fault, "the metrics cannot be written as text");
        }
        text
    }

    /// Takes the times of one decision. Off the request path, save when the audit's queue is full.
    pub(super) fn observe(&self, record: &Record) {
        // Whose answer was not read: nobody knows when the operation ended.
        let ended = record.wire_status.is_some() && !record.method.is_empty() && record.outcome != Outcome::Aborted;
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).tell(record, ended);
        for asked in &record.asked {
            let server = KeyValue::new("server", server(record).to_owned());
            let gate = KeyValue::new("gate", asked.gate.to_string());
            let took = asked.to.saturating_duration_since(asked.from).as_secs_f64();
            self.gate.record(took, &[gate.clone(), server.clone()]);
            let (result, shadow) = (KeyValue::new("result", asked.said), KeyValue::new("shadow", asked.shadow));
            self.gate_calls.add(1, &[gate, server, result, shadow]);
        }
    }

    /// Exports what there is, and ends the readers. Blocks.
    pub(super) fn shutdown(&self) {
        if let Err(fault) = self.provider.shutdown() {
            tracing::warn!(%fault, "the last metrics could not be exported");
        }
    }
}

fn server(record: &Record) -> &str {
    record.server.as_ref().map_or(NONE, |(name, _)| name)
}

/// Attributes of an operation, by OpenTelemetry's conventions for MCP.
fn operation(record: &Record, server: KeyValue) -> Vec<KeyValue> {
    let method = record.listed.map_or(OTHER, Method::as_str);
    let mut attributes = vec![server, KeyValue::new("mcp.method.name", method)];
    if let Some((key, name)) = target(record) {
        attributes.push(KeyValue::new(key, name.map_or_else(|| OTHER.to_owned(), str::to_owned)));
    }
    if let Some(code) = rpc_code(record) {
        let code = match code {
            RpcCode::Listed(code) => code.to_string(),
            RpcCode::Other => OTHER.to_owned(),
        };
        attributes.push(KeyValue::new("rpc.response.status_code", code.clone()));
        attributes.push(KeyValue::new("error.type", code));
    } else if let Some(error) = error_type(record) {
        attributes.push(KeyValue::new("error.type", error));
    }
    attributes
}

/// The JSON-RPC code of an operation, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RpcCode {
    Listed(i64),
    /// A server's own: it could be any number.
    Other,
}

fn rpc_code(record: &Record) -> Option<RpcCode> {
    // Those of refusals are ours, and few.
    let listed = |code: &i64| record.outcome == Outcome::Refused || CODES.contains(code);
    record.rpc_code.map(|code| if listed(&code) { RpcCode::Listed(code) } else { RpcCode::Other })
}

/// What went wrong where no JSON-RPC error says it.
pub(super) fn error_type(record: &Record) -> Option<&'static str> {
    match (record.tool_error, record.outcome) {
        (_, Outcome::Refused) => record.reason.map(crate::refusal::Reason::as_str),
        (true, _) => Some("tool_error"),
        _ => None,
    }
}

/// The tool or prompt of a call: the attribute, and its name when it is recorded.
pub(super) fn target(record: &Record) -> Option<(&'static str, Option<&str>)> {
    let (key, kind) = match record.listed? {
        Method::ToolsCall => ("gen_ai.tool.name", "tool:"),
        Method::PromptsGet => ("gen_ai.prompt.name", "prompt:"),
        _ => return None,
    };
    let name = record.capability.strip_prefix(kind).filter(|_| record.recorded);
    (!record.capability.is_empty()).then_some((key, name))
}

fn describe(name: &str) -> Option<&'static Metric> {
    CATALOG.iter().find(|metric| metric.name == name)
}

fn histogram(meter: &Meter, name: &'static str, buckets: &[f64]) -> Histogram<f64> {
    let metric = describe(name);
    meter
        .f64_histogram(name)
        .with_unit(metric.map_or("", |metric| metric.unit))
        .with_description(metric.map_or("", |metric| metric.description))
        .with_boundaries(buckets.to_vec())
        .build()
}

/// An instrument that reads its values when it is asked.
fn observe(meter: &Meter, metric: &'static Metric, counters: &Arc<Counters>, sources: &Arc<RwLock<Vec<Source>>>) {
    let (counters, sources) = (Arc::clone(counters), Arc::clone(sources));
    let read = move || -> Vec<(u64, Vec<KeyValue>)> {
        let sources = sources.read().unwrap_or_else(PoisonError::into_inner);
        let own = counters.samples_of(metric.name).into_iter();
        let all = own.chain(sources.iter().flat_map(|source| source()).filter(|sample| sample.name == metric.name));
        all.map(|sample| {
            let labels = sample.labels.into_iter().map(|(name, value)| KeyValue::new(name, value));
            (sample.value, labels.collect())
        })
        .collect()
    };
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    // The handle may go: the provider keeps the callback.
    match metric.kind {
        Kind::Counter => drop(
            meter
                .u64_observable_counter(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.description)
                .with_callback(move |to| read().iter().for_each(|(value, labels)| to.observe(*value, labels)))
                .build(),
        ),
        Kind::UpDown => drop(
            meter
                .i64_observable_up_down_counter(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.description)
                .with_callback(move |to| read().iter().for_each(|(value, labels)| to.observe(signed(*value), labels)))
                .build(),
        ),
        Kind::Gauge => drop(
            meter
                .u64_observable_gauge(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.description)
                .with_callback(move |to| read().iter().for_each(|(value, labels)| to.observe(*value, labels)))
                .build(),
        ),
        Kind::Histogram => {}
    }
}
