//! From an exchange's replies to Envoy's protobuf.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;

use crate::exchange::{Immediate, Reply, Verdict};
use crate::ladder::forward::HeaderEdits;

use super::wire;
use super::wire::processing_response::Response;
use super::wire::value::Kind;
use super::wire::{
    BodyMutation, BodyResponse, CommonResponse, Field, HeaderMutation, HeaderToSet, HeaderValueOption, HeadersResponse,
    HttpStatus, ImmediateResponse, ProcessingResponse, StreamedBodyResponse, Struct, TrailersResponse, Value,
    body_mutation,
};

/// Our namespace of dynamic metadata: Envoy's `metadata_options.receiving_namespaces` must name it.
const NAMESPACE: &str = "portcullis";

/// One reply as a message for Envoy.
pub(super) fn message(reply: Reply) -> ProcessingResponse {
    let (response, verdict) = match reply {
        // Envoy reads nothing else of such a message, so nothing else is said in it.
        Reply::MoreTime(time) => {
            return ProcessingResponse {
                override_message_timeout: Some(duration(time)),
                ..ProcessingResponse::default()
            };
        }
        Reply::RequestHeaders { edits, verdict } => {
            (Response::RequestHeaders(HeadersResponse { response: common(edits) }), Some(verdict))
        }
        Reply::RequestBody { edits, verdict } => {
            (Response::RequestBody(BodyResponse { response: common(edits) }), Some(verdict))
        }
        Reply::ResponseHeaders { edits } => {
            (Response::ResponseHeaders(HeadersResponse { response: common(edits) }), None)
        }
        Reply::ResponseBody { bytes, ends } => (Response::ResponseBody(streamed(bytes, ends)), None),
        Reply::ResponseTrailers => (Response::ResponseTrailers(TrailersResponse {}), None),
        Reply::Immediate(immediate) => {
            let (immediate, verdict) = immediate_response(immediate);
            (Response::ImmediateResponse(immediate), Some(verdict))
        }
    };
    let dynamic_metadata = verdict.map(|verdict| metadata(&verdict));
    ProcessingResponse { response: Some(response), dynamic_metadata, override_message_timeout: None }
}

fn duration(time: Duration) -> wire::Duration {
    // At most a day or so, by the configuration: both fit.
    wire::Duration {
        seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(time.subsec_nanos()).unwrap_or_default(),
    }
}

fn common(edits: HeaderEdits) -> Option<CommonResponse> {
    if edits.set.is_empty() && edits.remove.is_empty() {
        return None;
    }
    let set_headers = edits.set.into_iter().map(|(name, value)| header(name, value)).collect();
    let remove_headers = edits.remove.into_iter().map(|name| match name {
        Cow::Borrowed(name) => Bytes::from_static(name.as_bytes()),
        Cow::Owned(name) => Bytes::from(name),
    });
    let header_mutation = Some(HeaderMutation { set_headers, remove_headers: remove_headers.collect() });
    Some(CommonResponse { header_mutation, ..CommonResponse::default() })
}

fn header(name: &'static str, value: impl Into<Bytes>) -> HeaderValueOption {
    let header = HeaderToSet { key: Bytes::from_static(name.as_bytes()), raw_value: value.into() };
    HeaderValueOption { header: Some(header) }
}

fn streamed(bytes: Vec<u8>, ends: bool) -> BodyResponse {
    let piece = StreamedBodyResponse { body: bytes, end_of_stream: ends };
    let mutation = BodyMutation { mutation: Some(body_mutation::Mutation::StreamedResponse(piece)) };
    BodyResponse { response: Some(CommonResponse { body_mutation: Some(mutation), ..CommonResponse::default() }) }
}

fn immediate_response(immediate: Immediate) -> (ImmediateResponse, Verdict) {
    let Immediate { status, headers, body, details, verdict } = immediate;
    let set_headers = headers.into_iter().map(|(name, value)| header(name, value)).collect();
    let response = ImmediateResponse {
        status: Some(HttpStatus { code: i32::from(status) }),
        headers: Some(HeaderMutation { set_headers, remove_headers: Vec::new() }),
        body,
        details,
    };
    (response, verdict)
}

/// What the second lock and the access log read. Both keys of the lock are always said: an earlier filter may have planted
/// them, and Envoy merges, so a key that is left out would keep what was planted. While nothing is decided the rest is
/// left out, for it is said again with the verdict.
fn metadata(verdict: &Verdict) -> Struct {
    let mut fields = Vec::with_capacity(8);
    fields.push(field("decided", Kind::BoolValue(verdict.decided)));
    fields.push(field("server", text(verdict.server.as_deref().unwrap_or_default())));
    let texts = [
        ("decision", verdict.decision),
        ("reason", verdict.reason_text()),
        ("method", &verdict.method),
        ("capability", &verdict.capability),
        ("principal", &verdict.principal),
        ("id", &verdict.id),
    ];
    fields.extend(texts.into_iter().filter(|(_, said)| !said.is_empty()).map(|(name, said)| field(name, text(said))));
    Struct { fields: vec![field(NAMESPACE, Kind::StructValue(Struct { fields }))] }
}

fn field(name: &'static str, kind: Kind) -> Field {
    Field { key: Bytes::from_static(name.as_bytes()), value: Some(Value { kind: Some(kind) }) }
}

fn text(text: &str) -> Kind {
    Kind::StringValue(Bytes::copy_from_slice(text.as_bytes()))
}
