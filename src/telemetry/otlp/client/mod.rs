//! One signal's way to its collector: sends a request that is encoded already, over gRPC or HTTP, and tries again what
//! OTLP's specification calls worth another try.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use prost::Message as _;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::encode::Request;
use super::{Fault, Signal, Target};
use crate::telemetry::settings::Protocol;
use crate::upstream::http::{HttpClient, with_causes};

/// Most bytes of a collector's answer.
const ANSWER: usize = 1024 * 1024;
/// Tries beside the first, and how long until the second; each further wait is twice as long, up to the longest.
const TRIES: u32 = 3;
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(1600);
/// The longest that a collector may ask us to wait.
const ASKED: Duration = Duration::from_secs(30);
/// Spread over this, clients do not come back all at once.
const JITTER: u32 = 100;

/// A collector's answer. The three signals' have the same fields.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    partial: Option<AnswerPart>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnswerPart {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    message: String,
}

/// What a collector said of an export that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::telemetry) struct Partial {
    /// Items that it did not take all the same.
    pub(in crate::telemetry) rejected: u64,
    /// Why, or a warning.
    pub(in crate::telemetry) message: String,
}

impl From<Answer> for Partial {
    fn from(answer: Answer) -> Self {
        let part = answer.partial.unwrap_or_default();
        Self { rejected: u64::try_from(part.rejected).unwrap_or_default(), message: part.message }
    }
}

/// An export that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(in crate::telemetry) struct Failure {
    text: String,
    again: Again,
}

/// Whether an export that failed is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Never,
    Later,
    /// Not before this has passed.
    After(Duration),
}

/// The way of one signal.
pub(in crate::telemetry) struct Client {
    way: Way,
    headers: HeaderMap,
    /// For one export, all its tries together.
    timeout: Duration,
}

enum Way {
    Grpc(Channel, PathAndQuery),
    Http(HttpClient, Uri),
}

impl Client {
    /// A way to this target. Must be called within the runtime that it is to use.
    pub(in crate::telemetry) fn new(signal: Signal, to: &Target) -> Result<Self, Fault> {
        let fault = |fault: http::uri::InvalidUri| Fault::Exporter(format!("{}: {fault}", to.endpoint));
        let way = match to.protocol {
            Protocol::Grpc => Way::Grpc(to.channel()?, PathAndQuery::from_static(signal.method())),
            Protocol::HttpProtobuf => Way::Http(to.http()?, to.endpoint.parse().map_err(fault)?),
        };
        let mut headers = to.headers.clone();
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("portcullis/", env!("CARGO_PKG_VERSION"))));
        Ok(Self { way, headers, timeout: to.timeout })
    }

    /// Exports one request; tries again while that is of use and there is time.
    pub(in crate::telemetry) async fn export(&self, request: &Request) -> Result<Partial, Failure> {
        let (started, mut wait) = (Instant::now(), FIRST);
        let mut left = TRIES;
        loop {
            let failure = match self.once(request, self.timeout.saturating_sub(started.elapsed())).await {
                Ok(answer) => return Ok(answer.into()),
                Err(failure) => failure,
            };
            match failure.again {
                Again::Never => return Err(failure),
                Again::Later => {}
                Again::After(asked) => wait = wait.max(asked.min(ASKED)),
            }
            let pause = wait.saturating_add(jitter());
            if left == 0 || started.elapsed().saturating_add(pause) >= self.timeout {
                return Err(failure);
            }
            left -= 1;
            tracing::debug!(fault = %failure, ?pause, "an export failed; it is tried again");
            tokio::time::sleep(pause).await;
            wait = wait.saturating_mul(2).min(LONGEST.max(wait));
        }
    }

    async fn once(&self, request: &Request, within: Duration) -> Result<Answer, Failure> {
        let exchange = async {
            match &self.way {
                Way::Grpc(channel, method) => self.call(channel.clone(), method.clone(), request.clone()).await,
                Way::Http(client, uri) => self.post(client, uri, request).await,
            }
        };
        let late = |_| Failure {
            text: format!("expected an answer within {:?}, got none", self.timeout),
            again: Again::Later,
        };
        tokio::time::timeout(within, exchange).await.map_err(late)?
    }

    async fn call(&self, channel: Channel, method: PathAndQuery, message: Request) -> Result<Answer, Failure> {
        let failed = |status: Status| Failure { text: with_causes(&status), again: of_status(&status) };
        let mut request = tonic::Request::new(message);
        *request.metadata_mut() = MetadataMap::from_headers(self.headers.clone());
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await.map_err(|fault| failed(Status::from_error(Box::new(fault))))?;
        let answer = grpc.unary(request, method, Encoded).await.map_err(failed)?;
        Ok(answer.into_inner())
    }

    async fn post(&self, client: &HttpClient, uri: &Uri, message: &Request) -> Result<Answer, Failure> {
        let mut body = Vec::with_capacity(message.len());
        message.write(&mut body);
        let mut request = http::Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = uri.clone();
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let failed = |text: String| Failure { text, again: Again::Later };
        let answer = client.request(request).await.map_err(|fault| failed(with_causes(&fault)))?;
        let (status, again) = (answer.status(), of_answer(answer.status(), answer.headers()));
        let body = Limited::new(answer.into_body(), ANSWER).collect().await;
        if !status.is_success() {
            return Err(Failure { text: format!("expected status 200, got {status}"), again });
        }
        // It was taken. What else the answer says is of use only where it can be read.
        Ok(body.ok().and_then(|body| Answer::decode(body.to_bytes()).ok()).unwrap_or_default())
    }
}

/// Clients that failed together should not come back together.
fn jitter() -> Duration {
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    Duration::from_millis(u64::from(nanos / 1000 % JITTER))
}

/// OTLP's specification, "Failures" of OTLP/gRPC. A collector whose resources are exhausted recovers only if it says when.
fn of_status(status: &Status) -> Again {
    let asked = status.get_details_retry_info().and_then(|info| info.retry_delay);
    match (status.code(), asked) {
        (Code::ResourceExhausted | Code::Unavailable, Some(delay)) => Again::After(delay),
        (
            Code::Unavailable
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::DataLoss,
            _,
        ) => Again::Later,
        _ => Again::Never,
    }
}

/// OTLP's specification, "Failures" of OTLP/HTTP. A `Retry-After` that is a date is as good as none.
fn of_answer(status: StatusCode, headers: &HeaderMap) -> Again {
    let asked = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    match (status.as_u16(), asked) {
        (429 | 503, Some(seconds)) => Again::After(Duration::from_secs(seconds)),
        (429 | 502 | 503 | 504, _) => Again::Later,
        _ => Again::Never,
    }
}

/// Messages that are encoded already.
#[derive(Clone, Copy)]
struct Encoded;

impl Codec for Encoded {
    type Encode = Request;
    type Decode = Answer;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Encoded {
    type Item = Request;
    type Error = Status;

    fn encode(&mut self, message: Request, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(message.len());
        message.write(to);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Answer;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Answer>, Status> {
        Answer::decode(from).map(Some).map_err(|fault| Status::internal(fault.to_string()))
    }
}
