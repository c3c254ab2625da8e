//! The yardstick: an external processor that says "continue" to every phase and looks at nothing, on the same gRPC stack,
//! allocator, socket kind and HTTP/2 windows as Portcullis, in a process of its own.

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;

use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::{
    ExternalProcessor, ExternalProcessorServer,
};
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Phase;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Answer;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyMutation, BodyResponse, CommonResponse, HeadersResponse, ProcessingRequest, ProcessingResponse,
    StreamedBodyResponse, TrailersResponse, body_mutation,
};
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

struct Noop {
    screened: bool,
}

struct Exchange {
    inbound: Streaming<ProcessingRequest>,
    screened: bool,
    over: bool,
}

#[tonic::async_trait]
impl ExternalProcessor for Noop {
    type ProcessStream = Pin<Box<dyn Stream<Item = Result<ProcessingResponse, Status>> + Send>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
        let exchange = Exchange { inbound: request.into_inner(), screened: self.screened, over: false };
        Ok(Response::new(Box::pin(unfold(exchange, next))))
    }
}

async fn next(mut exchange: Exchange) -> Option<(Result<ProcessingResponse, Status>, Exchange)> {
    if exchange.over {
        return None;
    }
    let message = exchange.inbound.message().await.ok()??;
    let response = match message.request? {
        Phase::RequestHeaders(_) => Answer::RequestHeaders(HeadersResponse::default()),
        Phase::RequestBody(_) => {
            exchange.over = !exchange.screened;
            Answer::RequestBody(BodyResponse::default())
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
    Some((Ok(ProcessingResponse { response: Some(response), ..ProcessingResponse::default() }), exchange))
}

/// What `FULL_DUPLEX_STREAMED` wants back.
fn echo(body: Vec<u8>, end_of_stream: bool) -> BodyResponse {
    let piece = StreamedBodyResponse { body, end_of_stream, ..StreamedBodyResponse::default() };
    let mutation = BodyMutation { mutation: Some(body_mutation::Mutation::StreamedResponse(piece)) };
    BodyResponse { response: Some(CommonResponse { body_mutation: Some(mutation), ..CommonResponse::default() }) }
}

/// Serves on a Unix socket until killed.
pub(crate) fn serve(socket: &Path, screened: bool) {
    listen(socket, ExternalProcessorServer::new(Noop { screened }).max_decoding_message_size(8 << 20));
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
