//! From Envoy's protobuf to events. Bytes are moved, not copied.

use envoy_types::pb::envoy::config::core::v3::HeaderMap;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request;
use envoy_types::pb::envoy::service::ext_proc::v3::{HttpHeaders, ProcessingRequest, ProtocolConfiguration};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};

use crate::exchange::Event;
use crate::ladder::Head;
use crate::ladder::head::{Attributes, Modes};
use crate::message::headers::{Header, Headers};
use crate::message::write;

/// Key of `ProcessingRequest.attributes` under which Envoy sends what `request_attributes` asked for.
const FILTER: &str = "envoy.filters.http.ext_proc";
/// Dynamic metadata namespace of Envoy's JWT filter.
const JWT_AUTHN: &str = "envoy.filters.http.jwt_authn";

/// The event that a message of Envoy's is.
pub(super) fn event(message: ProcessingRequest) -> Event {
    let ProcessingRequest { request, mut attributes, metadata_context, protocol_config, .. } = message;
    match request {
        Some(Request::RequestHeaders(headers)) => {
            let mut known = attributes.remove(FILTER).map(read_attributes).unwrap_or_default();
            let verified = metadata_context.as_ref().and_then(|metadata| metadata.filter_metadata.get(JWT_AUTHN));
            if let Some(payloads) = verified {
                known.jwt_payloads = payloads.fields.iter().map(|(key, claims)| (key.clone(), json(claims))).collect();
            }
            let ends = headers.end_of_stream;
            let modes = protocol_config.map_or(Modes::Unknown, read_modes);
            Event::RequestHeaders(Head { headers: read_headers(headers), attributes: known, ends, modes })
        }
        Some(Request::RequestBody(body)) => Event::RequestBody(body.body),
        Some(Request::ResponseHeaders(headers)) => {
            let ends = headers.end_of_stream;
            Event::ResponseHeaders { headers: read_headers(headers), ends }
        }
        Some(Request::ResponseBody(body)) => Event::ResponseBody { bytes: body.body, ends: body.end_of_stream },
        Some(Request::ResponseTrailers(_)) => Event::ResponseTrailers,
        Some(Request::RequestTrailers(_)) => {
            Event::Fault("Envoy sent request trailers: set request_trailer_mode: SKIP")
        }
        _ => Event::Fault("Envoy sent a message of a kind that is not known here"),
    }
}

fn read_modes(config: ProtocolConfiguration) -> Modes {
    let whole = config.request_body_mode == BodySendMode::Buffered as i32
        && config.response_body_mode == BodySendMode::FullDuplexStreamed as i32;
    if whole { Modes::Whole } else { Modes::Other }
}

fn read_headers(headers: HttpHeaders) -> Headers {
    let HeaderMap { headers } = headers.headers.unwrap_or_default();
    Headers::new(
        headers
            .into_iter()
            .map(|header| {
                let value = if header.raw_value.is_empty() { header.value.into_bytes() } else { header.raw_value };
                Header { name: header.key, value }
            })
            .collect(),
    )
}

fn read_attributes(mut attributes: Struct) -> Attributes {
    let mut text = |name: &str| match attributes.fields.remove(name).and_then(|value| value.kind) {
        Some(Kind::StringValue(text)) => Some(text),
        _ => None,
    };
    Attributes {
        route: text("xds.route_name"),
        cluster: text("xds.cluster_name"),
        peer_uri: text("connection.uri_san_peer_certificate").filter(|uri| !uri.is_empty()),
        jwt_payloads: Vec::new(),
    }
}

/// A protobuf value as JSON text. Numbers are doubles there; whole ones are written without a fraction.
fn json(value: &Value) -> String {
    let mut out = Vec::new();
    write_json(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn write_json(value: &Value, out: &mut Vec<u8>) {
    match &value.kind {
        Some(Kind::BoolValue(value)) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Some(Kind::NumberValue(number)) if number.is_finite() => out.extend_from_slice(format!("{number}").as_bytes()),
        None | Some(Kind::NullValue(_) | Kind::NumberValue(_)) => out.extend_from_slice(b"null"),
        Some(Kind::StringValue(text)) => write::string(out, text),
        Some(Kind::ListValue(list)) => {
            out.push(b'[');
            for (n, item) in list.values.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_json(item, out);
            }
            out.push(b']');
        }
        Some(Kind::StructValue(object)) => {
            out.push(b'{');
            for (n, (name, item)) in object.fields.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write::string(out, name);
                out.push(b':');
                write_json(item, out);
            }
            out.push(b'}');
        }
    }
}
