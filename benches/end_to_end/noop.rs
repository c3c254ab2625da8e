//! The yardstick: an external processor that says "continue" to every phase and looks at nothing, on the same gRPC stack,
//! allocator, socket kind and HTTP/2 windows as Portcullis, in a process of its own.

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;

use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::{
    ExternalProcessor, ExternalProcessorServer,
};
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Phase;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Answer;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyMutation, BodyResponse, CommonResponse, HeaderMutation, HeadersResponse, ProcessingRequest, ProcessingResponse,
    StreamedBodyResponse, TrailersResponse, body_mutation,
};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::{Request, Response, Status, Streaming};

/// The word on the command line that makes this program the no-op processor.
pub(crate) const ROLE: &str = "no-op";
/// The phases of a call whose answer is read: headers and body both ways.
pub(crate) const SCREENED: &str = "screened";
/// The phases of a call whose answer is not: the stream ends at the verdict.
pub(crate) const UNSCREENED: &str = "unscreened";
/// As [`SCREENED`], with replies that say what Portcullis's say of an allowed call: what Envoy does with that is told apart
/// from what deciding costs. The second lock opens for it.
pub(crate) const WORDED: &str = "worded";

struct Noop {
    screened: bool,
    worded: bool,
}

struct Exchange {
    inbound: Streaming<ProcessingRequest>,
    screened: bool,
    worded: bool,
    over: bool,
}

#[tonic::async_trait]
impl ExternalProcessor for Noop {
    type ProcessStream = Pin<Box<dyn Stream<Item = Result<ProcessingResponse, Status>> + Send>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
        let Self { screened, worded } = *self;
        let exchange = Exchange { inbound: request.into_inner(), screened, worded, over: false };
        Ok(Response::new(Box::pin(unfold(exchange, next))))
    }
}

async fn next(mut exchange: Exchange) -> Option<(Result<ProcessingResponse, Status>, Exchange)> {
    if exchange.over {
        return None;
    }
    let message = exchange.inbound.message().await.ok()??;
    let mut dynamic_metadata = None;
    let response = match message.request? {
        Phase::RequestHeaders(_) => {
            dynamic_metadata = exchange.worded.then(|| metadata(false, &[]));
            Answer::RequestHeaders(HeadersResponse::default())
        }
        Phase::RequestBody(_) => {
            exchange.over = !exchange.screened;
            let said = [("server", "cases"), ("decision", "allow"), ("id", "0123456789ab00000001")];
            dynamic_metadata = exchange.worded.then(|| metadata(true, &said));
            Answer::RequestBody(BodyResponse { response: exchange.worded.then(edits) })
        }
        Phase::ResponseHeaders(headers) => {
            exchange.over = headers.end_of_stream;
            Answer::ResponseHeaders(HeadersResponse::default())
        }
        Phase::ResponseBody(body) => {
            exchange.over = body.end_of_stream;
            Answer::ResponseBody(echo(body.body, body.end_of_stream))
        }
        Phase::ResponseTrailers(_) => {
            exchange.over = true;
            Answer::ResponseTrailers(TrailersResponse::default())
        }
        Phase::RequestTrailers(_) => Answer::RequestTrailers(TrailersResponse::default()),
    };
    let response = ProcessingResponse { response: Some(response), dynamic_metadata, ..ProcessingResponse::default() };
    Some((Ok(response), exchange))
}

/// The edits of an allowed call's headers: the caller's token goes, and no answer is compressed.
fn edits() -> CommonResponse {
    let (key, raw_value) = ("accept-encoding".to_owned(), b"identity".to_vec());
    let header = Some(HeaderValue { key, raw_value, ..HeaderValue::default() });
    let set_headers = vec![HeaderValueOption { header, ..HeaderValueOption::default() }];
    let mutation = HeaderMutation { set_headers, remove_headers: vec!["authorization".to_owned()] };
    CommonResponse { header_mutation: Some(mutation), ..CommonResponse::default() }
}

/// Dynamic metadata as a verdict has it.
fn metadata(decided: bool, texts: &[(&str, &str)]) -> Struct {
    let value = |kind| Value { kind: Some(kind) };
    let said = |(key, text): &(&str, &str)| ((*key).to_owned(), value(Kind::StringValue((*text).to_owned())));
    let decided = ("decided".to_owned(), value(Kind::BoolValue(decided)));
    let ours = Struct { fields: texts.iter().map(said).chain([decided]).collect() };
    Struct { fields: [("portcullis".to_owned(), value(Kind::StructValue(ours)))].into() }
}

/// What `FULL_DUPLEX_STREAMED` wants back.
fn echo(body: Vec<u8>, end_of_stream: bool) -> BodyResponse {
    let piece = StreamedBodyResponse { body, end_of_stream, ..StreamedBodyResponse::default() };
    let mutation = BodyMutation { mutation: Some(body_mutation::Mutation::StreamedResponse(piece)) };
    BodyResponse { response: Some(CommonResponse { body_mutation: Some(mutation), ..CommonResponse::default() }) }
}

/// Serves on a Unix socket until killed.
pub(crate) fn serve(socket: &Path, phases: &str) {
    let noop = Noop { screened: phases != UNSCREENED, worded: phases == WORDED };
    listen(socket, ExternalProcessorServer::new(noop).max_decoding_message_size(8 << 20));
}

/// Serves one gRPC service as Portcullis serves its own, on one thread.
pub(crate) fn listen<S>(socket: &Path, service: S)
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = UnixListener::bind(socket).expect("the socket is free");
        // As in `extproc::listen`.
        let served = tonic::transport::Server::builder()
            .initial_stream_window_size(64 * 1024)
            .initial_connection_window_size(1 << 30)
            .max_concurrent_streams(1024)
            .add_service(service)
            .serve_with_incoming(UnixListenerStream::new(listener))
            .await;
        served.expect("the no-op processor serves");
    });
}
