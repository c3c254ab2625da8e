//! The front door: bytes as Envoy could send them on one gRPC stream, through protobuf, events and the exchange, and what
//! comes back as bytes again.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response;
use envoy_types::pb::envoy::service::ext_proc::v3::{ProcessingResponse, body_mutation};
use envoy_types::pb::google::protobuf::Struct;
use envoy_types::pb::google::protobuf::value::Kind;
use http_body_util::{BodyExt as _, Full};
use portcullis::extproc::service::Service;
use portcullis::extproc::wire::external_processor_server::ExternalProcessorServer;
use portcullis::telemetry::settings::Settings;
use portcullis::telemetry::{Known, Telemetry};
use prost::Message as _;
use tokio::runtime::{Builder, Runtime};
use tonic::codegen::Service as _;

use super::input::Input;
use super::seen::{Seen, Told};
use super::world::World;

thread_local! {
    static DOOR: RefCell<(World, Telemetry, Runtime)> = RefCell::new((
        World::new(&[]),
        Telemetry::start(&Settings { stdout: false, ..Settings::default() }, &Known::new()).expect("telemetry"),
        Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime"),
    ));
}

/// Messages in order, each behind its length in two bytes.
pub fn check(data: &[u8]) {
    run(data);
}

/// The same, and what Envoy saw.
pub fn run(data: &[u8]) -> Seen {
    let mut input = Input(data);
    let mut sent = Vec::new();
    while !input.is_empty() && sent.len() < 1 << 16 {
        let message = input.message();
        sent.push(0);
        sent.extend_from_slice(&u32::try_from(message.len()).expect("two bytes of length").to_be_bytes());
        sent.extend_from_slice(message);
    }
    DOOR.with_borrow_mut(|(world, telemetry, runtime)| {
        world.begin(true);
        runtime.block_on(converse(world, telemetry, sent))
    })
}

async fn converse(world: &World, telemetry: &Telemetry, sent: Vec<u8>) -> Seen {
    let (audit, counters) = (telemetry.audit().clone(), Arc::clone(telemetry.counters()));
    let service = Service::new(Arc::clone(&world.snapshot), audit, counters, 8).expect("random bytes");
    let request = http::Request::post("/envoy.service.ext_proc.v3.ExternalProcessor/Process")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(sent)))
        .expect("a request");
    let answer = ExternalProcessorServer::new(service).call(request).await.expect("an answer");
    let early = status(answer.headers());
    let told = answer.into_body().collect().await.expect("a whole body");
    let status = told.trailers().and_then(status).or(early).expect("a status");
    let mut seen = Seen::default();
    let mut body = told.to_bytes();
    while !body.is_empty() {
        let length = usize::try_from(u32::from_be_bytes(body[1..5].try_into().expect("four bytes"))).expect("a length");
        let message = ProcessingResponse::decode(body.slice(5..5 + length)).expect("what we send can be read");
        body = body.slice(5 + length..);
        seen.take(read(message));
    }
    // Envoy lets pass what was not answered when the stream ends well.
    assert!(status != "0" || seen.may_finish(true), "ended well with {seen:?}");
    seen
}

fn status(headers: &http::HeaderMap) -> Option<String> {
    Some(headers.get("grpc-status")?.to_str().expect("a number").to_owned())
}

fn read(message: ProcessingResponse) -> Told {
    let decided = message.dynamic_metadata.as_ref().is_some_and(decided);
    match message.response {
        None => {
            assert!(message.override_message_timeout.is_some(), "a message that says nothing");
            Told::MoreTime
        }
        Some(Response::RequestHeaders(_)) => Told::RequestHeaders { decided },
        Some(Response::RequestBody(_)) => Told::RequestBody { decided },
        Some(Response::ResponseHeaders(_)) => Told::ResponseHeaders,
        Some(Response::ResponseBody(body)) => {
            let mutation = body.response.and_then(|common| common.body_mutation).and_then(|body| body.mutation);
            let Some(body_mutation::Mutation::StreamedResponse(piece)) = mutation else {
                panic!("a piece is sent down")
            };
            Told::ResponseBody { ends: piece.end_of_stream }
        }
        Some(Response::ResponseTrailers(_)) => Told::ResponseTrailers,
        Some(other @ (Response::RequestTrailers(_) | Response::StreamedImmediateResponse(_))) => {
            panic!("nothing of the kind is said: {other:?}")
        }
        Some(Response::ImmediateResponse(immediate)) => {
            assert!(immediate.status.is_some_and(|status| (200..600).contains(&status.code)));
            Told::Immediate { decided }
        }
    }
}

/// Whether the second lock is told to let it through.
fn decided(metadata: &Struct) -> bool {
    let Some(Kind::StructValue(ours)) = metadata.fields.get("portcullis").and_then(|ours| ours.kind.clone()) else {
        return false;
    };
    matches!(ours.fields.get("decided").and_then(|value| value.kind.clone()), Some(Kind::BoolValue(true)))
}
