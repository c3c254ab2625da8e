//! A gate server of our own contract that does as a test says.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::{Request, Response, Status};

use crate::gates::contract::decide_response::Opinion;
use crate::gates::contract::gate_server::{Gate, GateServer};
use crate::gates::contract::{Allow, Answer, DecideRequest, DecideResponse, Deny};

/// What the server does with a question.
#[derive(Clone, Copy, Debug)]
pub(super) enum Say {
    Allow,
    Deny(&'static str),
    Answer(&'static str),
    /// An answer without an opinion.
    Nothing,
    Error,
    /// An error that is about this question.
    Refuse,
    Hang,
    /// Panics half-way, which resets the stream.
    Cut,
}

/// A running server; ends with the test's runtime.
pub(super) struct Server {
    shared: Arc<Shared>,
    address: String,
    pub(super) asked: Arc<AtomicUsize>,
    pub(super) cancelled: Arc<AtomicUsize>,
}

struct Shared {
    say: Mutex<Say>,
    last: Mutex<Option<DecideRequest>>,
    timeout: Mutex<Option<String>>,
    asked: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

/// Counts when it is dropped before it was let go.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl Gate for Service {
    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let told = request.metadata().get("grpc-timeout").and_then(|value| value.to_str().ok()).map(str::to_owned);
        *self.0.timeout.lock().unwrap() = told;
        *self.0.last.lock().unwrap() = Some(request.into_inner());
        let say = *self.0.say.lock().unwrap();
        let opinion = match say {
            Say::Allow => Some(Opinion::Allow(Allow {})),
            Say::Deny(code) => Some(Opinion::Deny(Deny {
                code: code.into(),
                reason: "too much".into(),
                retry_after_seconds: Some(7),
                ..Deny::default()
            })),
            Say::Answer(result) => Some(Opinion::Answer(Answer { result_json: result.into() })),
            Say::Nothing => None,
            Say::Error => return Err(Status::unavailable("no")),
            Say::Refuse => return Err(Status::invalid_argument("not this one")),
            // A panic without its message and backtrace, which take a busy machine their time.
            Say::Cut => std::panic::resume_unwind(Box::new("a gate that dies half-way")),
            Say::Hang => {
                let guard = Guard(Arc::clone(&self.0.cancelled));
                tokio::time::sleep(Duration::from_hours(1)).await;
                std::mem::forget(guard);
                None
            }
        };
        Ok(Response::new(DecideResponse { opinion }))
    }
}

impl Server {
    fn new(say: Say, address: String) -> (Self, GateServer<Service>) {
        let (asked, cancelled) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let shared = Arc::new(Shared {
            say: Mutex::new(say),
            last: Mutex::new(None),
            timeout: Mutex::new(None),
            asked: Arc::clone(&asked),
            cancelled: Arc::clone(&cancelled),
        });
        (Self { shared: Arc::clone(&shared), address, asked, cancelled }, GateServer::new(Service(shared)))
    }

    pub(super) async fn start(say: Say) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (server, service) = Self::new(say, format!("http://{}", listener.local_addr().expect("an address")));
        let serving = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        server
    }

    pub(super) fn start_unix(path: &Path, say: Say) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let (server, service) = Self::new(say, format!("unix:{}", path.display()));
        let serving = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(UnixListenerStream::new(listener)));
        server
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn say(&self, say: Say) {
        *self.shared.say.lock().unwrap() = say;
    }

    /// `grpc-timeout` of the last question.
    pub(super) fn timeout(&self) -> Option<String> {
        self.shared.timeout.lock().unwrap().clone()
    }

    pub(super) fn last(&self) -> Option<DecideRequest> {
        self.shared.last.lock().unwrap().clone()
    }
}
