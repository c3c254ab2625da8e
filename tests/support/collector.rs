//! An OpenTelemetry collector: takes OTLP over gRPC and over HTTP, and keeps what came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, Metric, NumberDataPoint, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, ServerTlsConfig};
use tonic::{Request, Response, Status};

use super::tls::Certificate;
use super::wait_for;

/// Attributes, each as text.
pub(crate) type Labels = HashMap<String, String>;

/// What came.
#[derive(Default)]
pub(crate) struct Got {
    /// The last value of each metric: OTLP's are cumulative.
    metrics: HashMap<String, Metric>,
    pub(crate) spans: Vec<Span>,
    pub(crate) logs: Vec<LogRecord>,
    /// `service.name` and its like.
    pub(crate) resource: Labels,
    /// The authorization headers of the exports.
    pub(crate) headers: Vec<String>,
}

/// A running collector.
pub(crate) struct Collector {
    pub(crate) grpc: u16,
    pub(crate) http: u16,
    got: Arc<Mutex<Got>>,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Service(Arc<Mutex<Got>>);

/// An attribute's value as text.
pub(crate) fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => value.to_string(),
        Some(Value::ArrayValue(list)) => list.values.iter().map(text).collect::<Vec<_>>().join(","),
        other => format!("{other:?}"),
    }
}

/// Attributes by name.
pub(crate) fn labels(attributes: &[KeyValue]) -> Labels {
    let pair = |pair: &KeyValue| (pair.key.clone(), pair.value.as_ref().map(text).unwrap_or_default());
    attributes.iter().map(pair).collect()
}

impl Service {
    fn resource(&self, resource: Option<&Resource>) {
        let found = labels(resource.map(|resource| &*resource.attributes).unwrap_or_default());
        self.0.lock().expect("no holder panics").resource.extend(found);
    }

    fn metrics(&self, request: ExportMetricsServiceRequest) {
        for one in request.resource_metrics {
            self.resource(one.resource.as_ref());
            let mut got = self.0.lock().expect("no holder panics");
            let metrics = one.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
            got.metrics.extend(metrics.map(|metric| (metric.name.clone(), metric)));
        }
    }

    fn traces(&self, request: ExportTraceServiceRequest) {
        for one in request.resource_spans {
            self.resource(one.resource.as_ref());
            let spans = one.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.0.lock().expect("no holder panics").spans.extend(spans);
        }
    }

    fn logs(&self, request: ExportLogsServiceRequest) {
        for one in request.resource_logs {
            self.resource(one.resource.as_ref());
            let logs = one.scope_logs.into_iter().flat_map(|scope| scope.log_records);
            self.0.lock().expect("no holder panics").logs.extend(logs);
        }
    }

    fn header(&self, value: Option<&str>) {
        self.0.lock().expect("no holder panics").headers.extend(value.map(str::to_owned));
    }
}

macro_rules! service {
    ($trait:ident, $request:ident, $response:ident, $take:ident) => {
        #[tonic::async_trait]
        impl $trait for Service {
            async fn export(&self, request: Request<$request>) -> Result<Response<$response>, Status> {
                self.header(request.metadata().get("authorization").and_then(|value| value.to_str().ok()));
                self.$take(request.into_inner());
                Ok(Response::new($response::default()))
            }
        }
    };
}

service!(MetricsService, ExportMetricsServiceRequest, ExportMetricsServiceResponse, metrics);
service!(TraceService, ExportTraceServiceRequest, ExportTraceServiceResponse, traces);
service!(LogsService, ExportLogsServiceRequest, ExportLogsServiceResponse, logs);

macro_rules! posted {
    ($request:ident, $take:ident) => {
        post(|State(service): State<Service>, headers: HeaderMap, body: Bytes| async move {
            let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
            let Ok(request) = $request::decode(body) else { return StatusCode::BAD_REQUEST };
            if !is("content-type", "application/x-protobuf") {
                return StatusCode::UNSUPPORTED_MEDIA_TYPE;
            }
            service.header(headers.get("authorization").and_then(|value| value.to_str().ok()));
            service.$take(request);
            StatusCode::OK
        })
    };
}

impl Collector {
    /// Starts both listeners on loopback ports.
    pub(crate) fn start() -> Self {
        Self::launch(0, None)
    }

    /// As [`Self::start`], with gRPC on this port.
    pub(crate) fn start_on(port: u16) -> Self {
        Self::launch(port, None)
    }

    /// As [`Self::start`], with TLS under gRPC.
    pub(crate) fn start_tls(certificate: &Certificate) -> Self {
        Self::launch(0, Some(certificate))
    }

    fn launch(grpc_port: u16, certificate: Option<&Certificate>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let got = Arc::<Mutex<Got>>::default();
        let service = Service(got.clone());
        let (grpc, http) = runtime.block_on(async {
            let bind = |port| tokio::net::TcpListener::bind(("127.0.0.1", port));
            (bind(grpc_port).await.expect("the port"), bind(0).await.expect("a port"))
        });
        let port = |listener: &tokio::net::TcpListener| listener.local_addr().expect("an address").port();
        let ports = (port(&grpc), port(&http));
        let mut server = tonic::transport::Server::builder();
        if let Some((certificate, key)) = certificate.map(Certificate::pem) {
            let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
            server = server.tls_config(tls).expect("certificate and key fit");
        }
        let server = server
            .add_service(MetricsServiceServer::new(service.clone()))
            .add_service(TraceServiceServer::new(service.clone()))
            .add_service(LogsServiceServer::new(service.clone()))
            .serve_with_incoming(TcpListenerStream::new(grpc));
        runtime.spawn(server);
        let router = axum::Router::new()
            .route("/v1/metrics", posted!(ExportMetricsServiceRequest, metrics))
            .route("/v1/traces", posted!(ExportTraceServiceRequest, traces))
            .route("/v1/logs", posted!(ExportLogsServiceRequest, logs))
            .with_state(service);
        runtime.spawn(async move { axum::serve(http, router).await });
        Self { grpc: ports.0, http: ports.1, got, _runtime: runtime }
    }

    /// Looks at what came until `found` has what it looks for.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, mut found: impl FnMut(&Got) -> Option<T>) -> T {
        let probe = || found(&self.got.lock().expect("no holder panics"));
        wait_for(Duration::from_secs(20), probe).unwrap_or_else(|| {
            let got = self.got.lock().expect("no holder panics");
            let mut names: Vec<_> = got.metrics.keys().collect();
            names.sort();
            let spans: Vec<_> = got.spans.iter().map(|span| &span.name).collect();
            panic!("expected {what} at the collector; metrics {names:?}, spans {spans:?}, {} logs", got.logs.len())
        })
    }
}

impl Got {
    pub(crate) fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.get(name)
    }

    /// All metrics' names and units.
    pub(crate) fn units(&self) -> Vec<(String, String)> {
        let mut all: Vec<_> = self.metrics.values().map(|metric| (metric.name.clone(), metric.unit.clone())).collect();
        all.sort();
        all
    }

    /// The data points of a sum or a gauge.
    pub(crate) fn numbers(&self, name: &str) -> Vec<(Labels, i64)> {
        let points: &[NumberDataPoint] = match self.metric(name).and_then(|metric| metric.data.as_ref()) {
            Some(Data::Sum(sum)) => &sum.data_points,
            Some(Data::Gauge(gauge)) => &gauge.data_points,
            _ => &[],
        };
        let value = |point: &NumberDataPoint| match point.value {
            Some(number_data_point::Value::AsInt(value)) => value,
            other => panic!("expected a whole number, got {other:?}"),
        };
        points.iter().map(|point| (labels(&point.attributes), value(point))).collect()
    }

    /// The data points of a histogram.
    pub(crate) fn histogram(&self, name: &str) -> Vec<(Labels, HistogramDataPoint)> {
        match self.metric(name).and_then(|metric| metric.data.as_ref()) {
            Some(Data::Histogram(histogram)) => {
                histogram.data_points.iter().map(|point| (labels(&point.attributes), point.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The sum of a metric over the points that have all these labels.
    pub(crate) fn sum(&self, name: &str, wanted: &[(&str, &str)]) -> i64 {
        self.numbers(name).into_iter().filter(|(labels, _)| has(labels, wanted)).map(|(_, value)| value).sum()
    }
}

/// Whether all of these are among the labels.
pub(crate) fn has(labels: &Labels, wanted: &[(&str, &str)]) -> bool {
    wanted.iter().all(|(name, value)| labels.get(*name).is_some_and(|found| found == value))
}
