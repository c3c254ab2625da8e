//! From Envoy's protobuf to events. Bytes are moved, not copied.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use prost::Message as _;

use crate::exchange::Event;
use crate::ladder::Head;
use crate::ladder::head::{Attributes, Modes};
use crate::message::headers::{Header, Headers};
use crate::message::write;

use super::wire::processing_request::Request;
use super::wire::value::Kind;
use super::wire::{
    AttributesEntry, HeaderMap, HttpHeaders, Metadata, ProcessingRequest, ProtocolConfiguration, Struct, Value,
};

/// Key of `ProcessingRequest.attributes` under which Envoy sends what `request_attributes` asked for.
const FILTER: &str = "envoy.filters.http.ext_proc";
/// Dynamic metadata namespace of Envoy's JWT filter.
const JWT_AUTHN: &str = "envoy.filters.http.jwt_authn";

const NO_TEXT: &str = "Envoy sent a header whose name is no text";

/// The event that a message of Envoy's is.
pub(super) fn event(message: ProcessingRequest) -> Event {
    match message.request {
        Some(Request::RequestHeaders(headers)) => {
            let ends = headers.end_of_stream;
            let modes = message.protocol_config.map_or(Modes::Unknown, read_modes);
            let Ok(mut attributes) = read_attributes(message.attributes) else {
                return Event::Fault("Envoy sent an attribute that is no text");
            };
            match message.metadata_context.map_or(Ok(Vec::new()), jwt_payloads) {
                Ok(payloads) => attributes.jwt_payloads = payloads,
                Err(Unreadable) => return Event::Fault("Envoy sent metadata of its JWT filter that cannot be read"),
            }
            match read_headers(headers) {
                Some(headers) => Event::RequestHeaders(Head { headers, attributes, ends, modes }),
                None => Event::Fault(NO_TEXT),
            }
        }
        Some(Request::RequestBody(body)) => Event::RequestBody(body.body),
        Some(Request::ResponseHeaders(headers)) => {
            let ends = headers.end_of_stream;
            read_headers(headers).map_or(Event::Fault(NO_TEXT), |headers| Event::ResponseHeaders { headers, ends })
        }
        Some(Request::ResponseBody(body)) => Event::ResponseBody { bytes: body.body, ends: body.end_of_stream },
        Some(Request::ResponseTrailers(_)) => Event::ResponseTrailers,
        Some(Request::RequestTrailers(_)) => {
            Event::Fault("Envoy sent request trailers: set request_trailer_mode: SKIP")
        }
        None => Event::Fault("Envoy sent a message of a kind that is not known here"),
    }
}

fn read_modes(config: ProtocolConfiguration) -> Modes {
    let whole = config.request_body_mode == BodySendMode::Buffered as i32
        && config.response_body_mode == BodySendMode::FullDuplexStreamed as i32;
    if whole { Modes::Whole } else { Modes::Other }
}

/// `None` when a name is no text.
fn read_headers(headers: HttpHeaders) -> Option<Headers> {
    let HeaderMap { headers } = headers.headers.unwrap_or_default();
    if headers.iter().any(|header| std::str::from_utf8(&header.key).is_err()) {
        return None;
    }
    let headers = headers.into_iter().map(|header| {
        let value = if header.raw_value.is_empty() { header.value } else { header.raw_value };
        Header { name: header.key, value }
    });
    Some(Headers::new(headers.collect()))
}

/// Of a map, the last entry under a key counts. One that is no text must not look as if Envoy had not said it: a route that
/// is not there is matched by something else.
fn read_attributes(mut all: Vec<AttributesEntry>) -> Result<Attributes, Unreadable> {
    let ours = all.iter().rposition(|entry| entry.key == FILTER).map(|at| all.swap_remove(at));
    let fields = ours.and_then(|entry| entry.value).unwrap_or_default().fields;
    let said = |name: &str| {
        let value = fields.iter().rfind(|field| field.key == name).and_then(|field| field.value.as_ref());
        match value.and_then(|value| value.kind.as_ref()) {
            Some(Kind::StringValue(said)) => text(said).map(|said| Some(said.to_owned())),
            _ => Ok(None),
        }
    };
    Ok(Attributes {
        route: said("xds.route_name")?,
        cluster: said("xds.cluster_name")?,
        peer_uri: said("connection.uri_san_peer_certificate")?.filter(|uri| !uri.is_empty()),
        jwt_payloads: Vec::new(),
    })
}

/// Something that Envoy says beside a request and that is no text, or no struct.
#[derive(Debug)]
struct Unreadable;

/// What Envoy's JWT filter verified, by payload key.
fn jwt_payloads(metadata: Metadata) -> Result<Vec<(String, String)>, Unreadable> {
    let Some(entry) = metadata.filter_metadata.into_iter().rfind(|entry| entry.key == JWT_AUTHN) else {
        return Ok(Vec::new());
    };
    let payloads = Struct::decode(Bytes::from(entry.value)).map_err(|_| Unreadable)?;
    payloads.fields.iter().map(|field| Ok((text(&field.key)?.to_owned(), json(field.value.as_ref())?))).collect()
}

/// Never approximately: two names must not become one.
fn text(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|_| Unreadable)
}

/// A protobuf value as JSON text. Numbers are doubles there; whole ones are written without a fraction.
fn json(value: Option<&Value>) -> Result<String, Unreadable> {
    let mut out = Vec::new();
    write_json(value, &mut out)?;
    String::from_utf8(out).map_err(|_| Unreadable)
}

fn write_json(value: Option<&Value>, out: &mut Vec<u8>) -> Result<(), Unreadable> {
    match value.and_then(|value| value.kind.as_ref()) {
        Some(Kind::BoolValue(value)) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Some(Kind::NumberValue(number)) if number.is_finite() => out.extend_from_slice(format!("{number}").as_bytes()),
        None | Some(Kind::NumberValue(_)) => out.extend_from_slice(b"null"),
        Some(Kind::StringValue(value)) => write::string(out, text(value)?),
        Some(Kind::ListValue(list)) => {
            out.push(b'[');
            for (n, item) in list.values.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_json(Some(item), out)?;
            }
            out.push(b']');
        }
        Some(Kind::StructValue(object)) => {
            out.push(b'{');
            for (n, field) in object.fields.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write::string(out, text(&field.key)?);
                out.push(b':');
                write_json(field.value.as_ref(), out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}
