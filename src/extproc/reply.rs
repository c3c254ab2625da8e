//! From an exchange's replies to Envoy's protobuf.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyMutation, BodyResponse, CommonResponse, HeaderMutation, HeadersResponse, ImmediateResponse, ProcessingResponse,
    StreamedBodyResponse, TrailersResponse, body_mutation,
};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Duration as PbDuration, Struct, Value};

use crate::exchange::{Immediate, Reply, Verdict};
use crate::ladder::forward::HeaderEdits;

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
        Reply::ResponseTrailers => (Response::ResponseTrailers(TrailersResponse::default()), None),
        Reply::Immediate(immediate) => {
            let (immediate, verdict) = immediate_response(immediate);
            (Response::ImmediateResponse(immediate), Some(verdict))
        }
    };
    ProcessingResponse {
        response: Some(response),
        dynamic_metadata: verdict.map(|verdict| metadata(&verdict)),
        ..ProcessingResponse::default()
    }
}

fn duration(time: Duration) -> PbDuration {
    // At most a day or so, by the configuration: both fit.
    PbDuration {
        seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(time.subsec_nanos()).unwrap_or_default(),
    }
}

fn common(edits: HeaderEdits) -> Option<CommonResponse> {
    if edits.set.is_empty() && edits.remove.is_empty() {
        return None;
    }
    let set_headers = edits.set.into_iter().map(|(name, value)| header(name, value)).collect();
    let header_mutation = Some(HeaderMutation { set_headers, remove_headers: edits.remove });
    Some(CommonResponse { header_mutation, ..CommonResponse::default() })
}

/// Envoy 1.40 reads `raw_value` only: a mutation that uses `value` sets an empty header.
fn header(name: &str, value: Vec<u8>) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue { key: name.to_owned(), raw_value: value, ..HeaderValue::default() }),
        ..HeaderValueOption::default()
    }
}

fn streamed(bytes: Vec<u8>, ends: bool) -> BodyResponse {
    let piece = StreamedBodyResponse { body: bytes, end_of_stream: ends, ..StreamedBodyResponse::default() };
    let mutation = BodyMutation { mutation: Some(body_mutation::Mutation::StreamedResponse(piece)) };
    BodyResponse { response: Some(CommonResponse { body_mutation: Some(mutation), ..CommonResponse::default() }) }
}

fn immediate_response(immediate: Immediate) -> (ImmediateResponse, Verdict) {
    let Immediate { status, headers, body, details, verdict } = immediate;
    let set_headers = headers.into_iter().map(|(name, value)| header(name, value.into_bytes())).collect();
    let response = ImmediateResponse {
        status: Some(HttpStatus { code: i32::from(status) }),
        headers: Some(HeaderMutation { set_headers, remove_headers: Vec::new() }),
        body,
        details,
        ..ImmediateResponse::default()
    };
    (response, verdict)
}

/// What the second lock and the access log read. Both keys of the lock are always said: an earlier filter may have planted
/// them, and Envoy merges, so a key that is left out would keep what was planted. While nothing is decided the rest is
/// left out, for it is said again with the verdict.
fn metadata(verdict: &Verdict) -> Struct {
    let mut fields = HashMap::with_capacity(8);
    fields.insert("decided".to_owned(), Value { kind: Some(Kind::BoolValue(verdict.decided)) });
    fields.insert("server".to_owned(), text_value(verdict.server.as_deref().unwrap_or_default()));
    let texts = [
        ("decision", verdict.decision),
        ("reason", verdict.reason_text()),
        ("method", &verdict.method),
        ("capability", &verdict.capability),
        ("principal", &verdict.principal),
        ("id", &verdict.id),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        fields.insert(name.to_owned(), text_value(text));
    }
    let ours = Value { kind: Some(Kind::StructValue(Struct { fields })) };
    Struct { fields: HashMap::from([(NAMESPACE.to_owned(), ours)]) }
}

fn text_value(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}
