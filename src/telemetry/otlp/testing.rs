//! A collector of traces that does as it is told, over gRPC.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_sdk::Resource;
use tokio::runtime::{Handle, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use super::client::Client;
use super::encode::Envelope;
use super::{Signal, Target};
use crate::telemetry::settings::Protocol;

/// What becomes of an export.
#[derive(Clone, Copy)]
pub(in crate::telemetry) enum Verdict {
    Take,
    /// Taken but for so many.
    Reject(i64),
    Unavailable,
    Invalid,
}

/// What came, in the order of its coming.
#[derive(Clone, Default)]
pub(in crate::telemetry) struct Got {
    pub(in crate::telemetry) requests: Vec<ExportTraceServiceRequest>,
    agents: Vec<String>,
}

struct Service {
    got: Arc<Mutex<Got>>,
    verdict: fn(usize) -> Verdict,
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let agent = request.metadata().get("user-agent").and_then(|agent| agent.to_str().ok());
        let attempt = {
            let mut got = self.got.lock().unwrap();
            got.agents.push(agent.unwrap_or_default().to_owned());
            got.requests.push(request.into_inner());
            got.requests.len() - 1
        };
        match (self.verdict)(attempt) {
            Verdict::Take => Ok(Response::new(ExportTraceServiceResponse::default())),
            Verdict::Reject(rejected_spans) => {
                let partial = ExportTracePartialSuccess { rejected_spans, error_message: "not these".to_owned() };
                Ok(Response::new(ExportTraceServiceResponse { partial_success: Some(partial) }))
            }
            Verdict::Unavailable => Err(Status::unavailable("not now")),
            Verdict::Invalid => Err(Status::invalid_argument("not ever")),
        }
    }
}

/// A running collector.
pub(in crate::telemetry) struct Server {
    port: u16,
    got: Arc<Mutex<Got>>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let build = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    RUNTIME.get_or_init(|| build().expect("a runtime"))
}

/// Waits for something that talks to a [`Server`].
pub(in crate::telemetry) fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

impl Server {
    /// `verdict` decides by the number of exports that came before.
    pub(in crate::telemetry) fn start(verdict: fn(usize) -> Verdict) -> Self {
        let got = Arc::<Mutex<Got>>::default();
        let listener = block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        let service = TraceServiceServer::new(Service { got: Arc::clone(&got), verdict });
        let server = tonic::transport::Server::builder().add_service(service);
        runtime().spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { port, got }
    }

    pub(in crate::telemetry) fn runtime() -> Handle {
        runtime().handle().clone()
    }

    pub(in crate::telemetry) fn client(&self) -> Client {
        let _entered = runtime().enter();
        let to = Target {
            endpoint: format!("http://127.0.0.1:{}", self.port),
            protocol: Protocol::Grpc,
            timeout: Duration::from_secs(20),
            ca: None,
            headers: http::HeaderMap::new(),
        };
        Client::new(Signal::Traces, &to).expect("a client")
    }

    pub(in crate::telemetry) fn envelope() -> Envelope {
        Envelope::new(&Resource::builder_empty().build())
    }

    pub(in crate::telemetry) fn got(&self) -> Got {
        self.got.lock().unwrap().clone()
    }

    /// The names of the spans of each export.
    pub(in crate::telemetry) fn names(&self) -> Vec<Vec<String>> {
        let scopes = |request: ExportTraceServiceRequest| {
            request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans)
        };
        let names = |request| scopes(request).flat_map(|scope| scope.spans).map(|span| span.name).collect();
        self.got().requests.into_iter().map(names).collect()
    }

    pub(in crate::telemetry) fn agents(&self) -> Vec<String> {
        self.got().agents
    }

    /// Waits until so many exports came.
    pub(in crate::telemetry) fn wait(&self, exports: usize) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.got().requests.len() < exports {
            assert!(Instant::now() < end, "expected {exports} exports, got {}", self.got().requests.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
