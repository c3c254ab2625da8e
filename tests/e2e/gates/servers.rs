//! Gate servers on a thread of their own, which do as the test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::auth::v3::authorization_server::{Authorization, AuthorizationServer};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use portcullis::gates::contract::decide_response::Opinion;
use portcullis::gates::contract::gate_server::{self, GateServer};
use portcullis::gates::contract::{self, DecideRequest, DecideResponse};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// What a gate does with a question.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Say {
    Allow,
    Deny,
    BadDetails,
    Answer(&'static str),
    /// An answer without an opinion.
    Nothing,
    Error,
    Hang,
    /// Allow, after so many milliseconds.
    Slow(u64),
    /// Deny, after so many milliseconds.
    SlowDeny(u64),
    /// Deny the first question and allow the others.
    DenyFirst,
    /// Deny with this code, text of this length and details.
    DenyWith(&'static str, usize, &'static str),
    /// The stream ends without an answer.
    Panic,
    /// `ext_authz`: allow, on condition of a header.
    Edit,
    /// `ext_authz`: a denial with HTTP 503 and a body that is no JSON.
    Busy,
    /// `ext_authz`: a denial with a challenge.
    Challenge,
}

#[derive(Clone)]
struct Shared {
    say: Arc<Mutex<Say>>,
    last: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

/// A running gate; it ends with the test's process.
pub(crate) struct Gate {
    shared: Shared,
    port: u16,
}

impl Gate {
    /// A server of our own contract.
    pub(crate) fn start(say: Say) -> Self {
        Self::serve(say, |shared| tonic::transport::Server::builder().add_service(GateServer::new(shared)))
    }

    /// A server of Envoy's `ext_authz`.
    pub(crate) fn start_ext_authz(say: Say) -> Self {
        Self::serve(say, |shared| tonic::transport::Server::builder().add_service(AuthorizationServer::new(shared)))
    }

    fn serve(say: Say, router: impl FnOnce(Shared) -> tonic::transport::server::Router) -> Self {
        let shared = Shared {
            say: Arc::new(Mutex::new(say)),
            last: Arc::default(),
            asked: Arc::default(),
            cancelled: Arc::default(),
        };
        let router = router(shared.clone());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        listener.set_nonblocking(true).expect("a listener for tokio");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("within the runtime");
                router.serve_with_incoming(TcpListenerStream::new(listener)).await.expect("it serves");
            });
        });
        Self { shared, port }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn say(&self, say: Say) {
        *self.shared.say.lock().expect("no holder panics") = say;
    }

    /// The last question, as debug text.
    pub(crate) fn last(&self) -> String {
        self.shared.last.lock().expect("no holder panics").clone()
    }

    pub(crate) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.shared.cancelled.load(Ordering::SeqCst)
    }
}

struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Notes a question and does what both protocols have in common.
    async fn heard(&self, question: String) -> Result<Say, Status> {
        *self.last.lock().expect("no holder panics") = question;
        let first = self.asked.fetch_add(1, Ordering::SeqCst) == 0;
        let say = *self.say.lock().expect("no holder panics");
        match say {
            Say::Error => Err(Status::unavailable("a fault that no caller may read")),
            Say::Panic => panic!("a gate that dies half-way"),
            Say::Hang => {
                let _guard = Guard(self.cancelled.clone());
                tokio::time::sleep(Duration::from_hours(1)).await;
                Ok(say)
            }
            Say::Slow(millis) | Say::SlowDeny(millis) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(if matches!(say, Say::Slow(_)) { Say::Allow } else { Say::Deny })
            }
            Say::DenyFirst => Ok(if first { Say::Deny } else { Say::Allow }),
            _ => Ok(say),
        }
    }
}

#[tonic::async_trait]
impl gate_server::Gate for Shared {
    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let deny = |details: &str| {
            Some(Opinion::Deny(contract::Deny {
                code: "payments.limit".into(),
                reason: "Ask a manager.".into(),
                description: "The amount is above the limit.".into(),
                details_json: details.into(),
                retry_after_seconds: Some(7),
                log: "limit".into(),
            }))
        };
        let opinion = match self.heard(format!("{:?}", request.into_inner())).await? {
            Say::Allow => Some(Opinion::Allow(contract::Allow {})),
            Say::Deny => deny(r#"{"limit":1000}"#),
            Say::BadDetails => deny(r#"{"limit":1000},"admin":true"#),
            Say::DenyWith(code, length, details) => Some(Opinion::Deny(contract::Deny {
                code: code.into(),
                reason: "x".repeat(length),
                details_json: details.into(),
                ..contract::Deny::default()
            })),
            Say::Answer(result) => Some(Opinion::Answer(contract::Answer { result_json: result.into() })),
            _ => None,
        };
        Ok(Response::new(DecideResponse { opinion }))
    }
}

#[tonic::async_trait]
impl Authorization for Shared {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let header = |name: &str, value: &str| HeaderValueOption {
            header: Some(HeaderValue { key: name.into(), value: value.into(), ..HeaderValue::default() }),
            ..HeaderValueOption::default()
        };
        let denied = |body: &str, headers| {
            let status = Some(HttpStatus { code: 401 });
            (16, HttpResponse::DeniedResponse(DeniedHttpResponse { status, headers, body: body.into() }))
        };
        let (code, response) = match self.heard(format!("{:?}", request.into_inner())).await? {
            Say::Allow => (0, HttpResponse::OkResponse(OkHttpResponse::default())),
            Say::Edit => {
                let headers = vec![header("x-user", "root")];
                (0, HttpResponse::OkResponse(OkHttpResponse { headers, ..OkHttpResponse::default() }))
            }
            Say::Deny => denied(r#"{"error":"opa.hours","message":"Closed."}"#, vec![header("retry-after", "30")]),
            Say::Busy => {
                let status = Some(HttpStatus { code: 503 });
                let body = "<html>try later</html>".into();
                (14, HttpResponse::DeniedResponse(DeniedHttpResponse { status, headers: Vec::new(), body }))
            }
            Say::Challenge => {
                denied("", vec![header("www-authenticate", "Bearer error=\"insufficient_user_authentication\"")])
            }
            _ => return Ok(Response::new(CheckResponse::default())),
        };
        let status = Some(envoy_types::pb::google::rpc::Status { code, message: String::new(), details: Vec::new() });
        Ok(Response::new(CheckResponse { status, http_response: Some(response), ..CheckResponse::default() }))
    }
}
