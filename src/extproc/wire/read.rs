//! From what Envoy sends (`ProcessingRequest`) to events. Headers stay where they stand in the received bytes.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use prost::Message as _;
use prost_types::value::Kind;

use crate::exchange::Event;
use crate::ladder::Head;
use crate::ladder::head::{Attributes, Modes};
use crate::message::headers::{Headers, Place};
use crate::message::protobuf::{Fields, Malformed, Value, bytes_of, flag_of, number_of, once};
use crate::message::write;

/// Key of `ProcessingRequest.attributes` under which Envoy sends what `request_attributes` asked for.
const FILTER: &[u8] = b"envoy.filters.http.ext_proc";
/// Dynamic metadata namespace of Envoy's JWT filter.
const JWT_AUTHN: &[u8] = b"envoy.filters.http.jwt_authn";

const NO_TEXT: &str = "Envoy sent a header whose name is no text";

/// The event that a message of Envoy's is.
pub(super) fn event(bytes: &Bytes) -> Result<Event, Malformed> {
    let message = Message::read(bytes)?;
    let Some((phase, place)) = message.phase.clone() else {
        return Ok(Event::Fault("Envoy sent a message of a kind that is not known here"));
    };
    Ok(match phase {
        Phase::RequestHeaders => {
            let (headers, ends) = headers(bytes, place)?;
            request_headers(bytes, &message, headers, ends)
        }
        Phase::ResponseHeaders => match headers(bytes, place)? {
            (Some(headers), ends) => Event::ResponseHeaders { headers, ends },
            (None, _) => Event::Fault(NO_TEXT),
        },
        Phase::RequestBody => Event::RequestBody(at(bytes, body(bytes, place)?.0).to_vec()),
        Phase::ResponseBody => {
            let (place, ends) = body(bytes, place)?;
            Event::ResponseBody { bytes: bytes.slice_ref(at(bytes, place)), ends }
        }
        Phase::RequestTrailers => Event::Fault("Envoy sent request trailers: set request_trailer_mode: SKIP"),
        Phase::ResponseTrailers => Event::ResponseTrailers,
    })
}

/// The oneof of `ProcessingRequest`.
#[derive(Clone, Copy)]
enum Phase {
    RequestHeaders,
    ResponseHeaders,
    RequestBody,
    ResponseBody,
    RequestTrailers,
    ResponseTrailers,
}

impl Phase {
    fn of(field: u64) -> Option<Self> {
        Some(match field {
            2 => Self::RequestHeaders,
            3 => Self::ResponseHeaders,
            4 => Self::RequestBody,
            5 => Self::ResponseBody,
            6 => Self::RequestTrailers,
            7 => Self::ResponseTrailers,
            _ => return None,
        })
    }
}

/// Where the parts of a message stand.
#[derive(Default)]
struct Message {
    phase: Option<(Phase, Range<usize>)>,
    /// `metadata_context`.
    metadata: Option<Range<usize>>,
    /// Of `attributes`, the struct that is ours.
    attributes: Option<Range<usize>>,
    /// `protocol_config`.
    config: Option<Range<usize>>,
}

impl Message {
    fn read(all: &[u8]) -> Result<Self, Malformed> {
        let mut message = Self::default();
        let mut fields = Fields::within(all, 0..all.len());
        while let Some((field, value)) = fields.next()? {
            match (field, Phase::of(field)) {
                (_, Some(phase)) => once(&mut message.phase, (phase, value.bytes()?))?,
                (8, _) => once(&mut message.metadata, value.bytes()?)?,
                (9, _) => {
                    // Of a map, the last entry under a key counts.
                    if let (FILTER, value) = entry(all, value.bytes()?)? {
                        message.attributes = Some(value.unwrap_or_default());
                    }
                }
                (11, _) => once(&mut message.config, value.bytes()?)?,
                _ => {}
            }
        }
        Ok(message)
    }
}

/// Key and value of an entry of a map.
fn entry(all: &[u8], place: Range<usize>) -> Result<(&[u8], Option<Range<usize>>), Malformed> {
    let [key, value] = Fields::within(all, place).pick([1, 2])?;
    Ok((at(all, bytes_of(key)?), value.map(Value::bytes).transpose()?))
}

fn at(all: &[u8], place: Range<usize>) -> &[u8] {
    all.get(place).unwrap_or_default()
}

fn request_headers(bytes: &Bytes, message: &Message, headers: Option<Headers>, ends: bool) -> Event {
    let Some(headers) = headers else { return Event::Fault(NO_TEXT) };
    let Ok(modes) = message.config.clone().map_or(Ok(Modes::Unknown), |place| modes(bytes, place)) else {
        return Event::Fault("Envoy sent a processing mode that cannot be read");
    };
    // One that is no text must not look as if Envoy had not said it: a route that is not there is matched by something else.
    let Ok(mut attributes) =
        message.attributes.clone().map_or(Ok(Attributes::default()), |place| attributes(bytes, place))
    else {
        return Event::Fault("Envoy sent an attribute that is no text");
    };
    match message.metadata.clone().map_or(Ok(Vec::new()), |place| jwt_payloads(bytes, place)) {
        Ok(payloads) => attributes.jwt_payloads = payloads,
        Err(Malformed) => return Event::Fault("Envoy sent metadata of its JWT filter that cannot be read"),
    }
    Event::RequestHeaders(Head { headers, attributes, ends, modes })
}

/// `HttpHeaders`, and whether nothing follows them. `None` when a name is no text.
fn headers(bytes: &Bytes, place: Range<usize>) -> Result<(Option<Headers>, bool), Malformed> {
    let [map, ends] = Fields::within(bytes, place).pick([1, 3])?;
    let mut places = Vec::with_capacity(24);
    let mut fields = Fields::within(bytes, bytes_of(map)?);
    while let Some((field, value)) = fields.next()? {
        if field == 1 {
            places.push(header(bytes, value.bytes()?)?);
        }
    }
    // HTTP knows no other names.
    let text = places.iter().all(|place| at(bytes, place.name.clone()).is_ascii());
    let headers = text.then(|| Headers::within(bytes.clone(), places));
    Ok((headers, flag_of(ends)?))
}

/// `HeaderValue`. Older Envoys fill `value` in the place of `raw_value`.
fn header(all: &[u8], place: Range<usize>) -> Result<Place, Malformed> {
    let [name, value, raw] = Fields::within(all, place).pick([1, 2, 3])?;
    let (value, raw) = (bytes_of(value)?, bytes_of(raw)?);
    Ok(Place { name: bytes_of(name)?, value: if raw.is_empty() { value } else { raw } })
}

/// Where the bytes of an `HttpBody` stand, and whether nothing follows it.
fn body(all: &[u8], place: Range<usize>) -> Result<(Range<usize>, bool), Malformed> {
    let [body, ends] = Fields::within(all, place).pick([1, 2])?;
    Ok((bytes_of(body)?, flag_of(ends)?))
}

/// `ProtocolConfiguration`.
fn modes(all: &[u8], place: Range<usize>) -> Result<Modes, Malformed> {
    let [request, response] = Fields::within(all, place).pick([1, 2])?;
    let is = |mode, expected: BodySendMode| Ok(i32::try_from(number_of(mode)?) == Ok(expected as i32));
    let whole = is(request, BodySendMode::Buffered)? & is(response, BodySendMode::FullDuplexStreamed)?;
    Ok(if whole { Modes::Whole } else { Modes::Other })
}

/// A `google.protobuf.Struct` of attributes, of which only those that are texts are looked at.
fn attributes(all: &[u8], place: Range<usize>) -> Result<Attributes, Malformed> {
    let mut attributes = Attributes::default();
    let mut fields = Fields::within(all, place);
    while let Some((field, value)) = fields.next()? {
        if field != 1 {
            continue;
        }
        let (key, value) = entry(all, value.bytes()?)?;
        let said = match key {
            b"xds.route_name" => &mut attributes.route,
            b"xds.cluster_name" => &mut attributes.cluster,
            b"source.address" => &mut attributes.source,
            b"connection.uri_san_peer_certificate" => &mut attributes.peer_uri,
            _ => continue,
        };
        *said = text_value(all, value.unwrap_or_default())?;
    }
    attributes.peer_uri = attributes.peer_uri.filter(|uri| !uri.is_empty());
    Ok(attributes)
}

/// The text in a `google.protobuf.Value`; `None` when it is none. Of its oneof, what comes last counts.
fn text_value(all: &[u8], place: Range<usize>) -> Result<Option<String>, Malformed> {
    let mut said = None;
    let mut fields = Fields::within(all, place);
    while let Some((field, value)) = fields.next()? {
        match field {
            3 => said = Some(value.bytes()?),
            1..=6 => said = None,
            _ => {}
        }
    }
    // Never approximately: two names must not become one.
    said.map(|place| String::from_utf8(at(all, place).to_vec()).map_err(|_| Malformed)).transpose()
}

/// What Envoy's JWT filter verified, by payload key.
fn jwt_payloads(all: &[u8], place: Range<usize>) -> Result<Vec<(String, String)>, Malformed> {
    let mut found = None;
    let mut fields = Fields::within(all, place);
    while let Some((field, value)) = fields.next()? {
        if field == 1
            && let (JWT_AUTHN, value) = entry(all, value.bytes()?)?
        {
            found = Some(value.unwrap_or_default());
        }
    }
    let Some(place) = found else { return Ok(Vec::new()) };
    let payloads = prost_types::Struct::decode(at(all, place)).map_err(|_| Malformed)?;
    payloads.fields.iter().map(|(key, payload)| Ok((key.clone(), json(payload)?))).collect()
}

/// A protobuf value as JSON text. Numbers are doubles there; whole ones are written without a fraction.
fn json(value: &prost_types::Value) -> Result<String, Malformed> {
    let mut out = Vec::new();
    write_json(value, &mut out);
    String::from_utf8(out).map_err(|_| Malformed)
}

fn write_json(value: &prost_types::Value, out: &mut Vec<u8>) {
    match &value.kind {
        Some(Kind::BoolValue(value)) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Some(Kind::NumberValue(number)) if number.is_finite() => out.extend_from_slice(format!("{number}").as_bytes()),
        None | Some(Kind::NumberValue(_) | Kind::NullValue(_)) => out.extend_from_slice(b"null"),
        Some(Kind::StringValue(value)) => write::string(out, value),
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
            for (n, (key, item)) in object.fields.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write::string(out, key);
                out.push(b':');
                write_json(item, out);
            }
            out.push(b'}');
        }
    }
}
