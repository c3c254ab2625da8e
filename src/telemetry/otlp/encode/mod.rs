//! OTLP's protobuf, appended to bytes as it stands on the wire: spans and log records are encoded once, from the record,
//! instead of being built as objects that are converted, measured and encoded.
//!
//! Numbers of fields are those of `opentelemetry/proto`; all used here are below 16, so a field's key is one byte.

#[cfg(test)]
mod tests;

use bytes::{BufMut, Bytes};
use opentelemetry::{Array, Value as Configured};
use opentelemetry_sdk::Resource;

use crate::message::protobuf::{begin, bytes, delimited, field_len, fixed64, message, number};

/// Name of the instrumentation scope of everything.
const SCOPE: &str = "portcullis";

/// An attribute's value (`AnyValue`).
#[derive(Clone, Copy, Debug)]
pub(in crate::telemetry) enum Value<'a> {
    Text(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
    Ints(&'a [u32]),
    Texts(&'a [String]),
}

/// Text; none where it is empty, which is the default.
pub(in crate::telemetry) fn text(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        bytes(out, field, text.as_bytes());
    }
}

/// An attribute (`KeyValue`) in this field.
pub(in crate::telemetry) fn attribute(out: &mut Vec<u8>, field: u8, name: &str, value: Value<'_>) {
    if let Value::Text(text) = value {
        // What most attributes are: their lengths are known, so nothing is moved.
        let any = field_len(text.len());
        let pair = field_len(name.len()) + field_len(any);
        out.reserve(pair.saturating_add(8));
        if let Some([pair, long, any, short]) = one_byte([pair, name.len(), any, text.len()]) {
            out.extend_from_slice(&[delimited(field), pair, delimited(1), long]);
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&[delimited(2), any, delimited(1), short]);
            return out.extend_from_slice(text.as_bytes());
        }
        begin(out, field, pair);
        bytes(out, 1, name.as_bytes());
        begin(out, 2, any);
        return bytes(out, 1, text.as_bytes());
    }
    message(out, field, |out| {
        bytes(out, 1, name.as_bytes());
        any(out, 2, value);
    });
}

/// Lengths of which each takes one byte; `None` where one takes more.
fn one_byte(lengths: [usize; 4]) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    for (byte, length) in bytes.iter_mut().zip(lengths) {
        *byte = u8::try_from(length).ok().filter(|length| *length < 0x80)?;
    }
    Some(bytes)
}

fn any(out: &mut Vec<u8>, field: u8, value: Value<'_>) {
    message(out, field, |out| match value {
        Value::Text(text) => bytes(out, 1, text.as_bytes()),
        Value::Bool(value) => number(out, 2, u64::from(value)),
        Value::Int(value) => number(out, 3, value.cast_unsigned()),
        Value::Double(value) => fixed64(out, 4, value.to_bits()),
        Value::Ints(values) => array(out, values.iter().map(|value| Value::Int(i64::from(*value)))),
        Value::Texts(values) => array(out, values.iter().map(|value| Value::Text(value))),
    });
}

fn array<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = Value<'a>>) {
    message(out, 5, |out| values.for_each(|value| any(out, 1, value)));
}

/// What stands around the spans or log records of a request: who tells (`ResourceSpans` and `ResourceLogs`, `ScopeSpans` and
/// `ScopeLogs` have the same fields).
#[derive(Clone, Debug)]
pub(in crate::telemetry) struct Envelope {
    resource: Vec<u8>,
    scope: Vec<u8>,
    schema: Vec<u8>,
}

impl Envelope {
    pub(in crate::telemetry) fn new(resource: &Resource) -> Self {
        let mut own = Self { resource: Vec::new(), scope: Vec::new(), schema: Vec::new() };
        message(&mut own.resource, 1, |out| {
            for (name, value) in resource {
                configured(out, name.as_str(), value);
            }
        });
        message(&mut own.scope, 1, |out| text(out, 1, SCOPE));
        text(&mut own.schema, 3, resource.schema_url().unwrap_or_default());
        own
    }

    /// The request of `items`: encoded spans or log records, each as field 2.
    pub(in crate::telemetry) fn wrap(&self, items: Vec<u8>) -> Request {
        let scope = self.scope.len() + items.len();
        let resource = self.resource.len() + field_len(scope) + self.schema.len();
        let mut head = Vec::with_capacity(self.resource.len() + self.scope.len() + 32);
        begin(&mut head, 1, resource);
        head.extend_from_slice(&self.resource);
        begin(&mut head, 2, scope);
        head.extend_from_slice(&self.scope);
        Request([head.into(), items.into(), self.schema.clone().into()])
    }
}

/// An encoded request, in the pieces that it was made of: the items in it are not copied. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::telemetry) struct Request([Bytes; 3]);

impl Request {
    /// Appends all of it.
    pub(in crate::telemetry) fn write(&self, out: &mut impl BufMut) {
        self.0.iter().for_each(|piece| out.put_slice(piece));
    }

    pub(in crate::telemetry) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }
}

/// An attribute of the resource, as the SDK read it from variables.
fn configured(out: &mut Vec<u8>, name: &str, value: &Configured) {
    let simple = match value {
        Configured::Bool(value) => Value::Bool(*value),
        Configured::I64(value) => Value::Int(*value),
        Configured::F64(value) => Value::Double(*value),
        Configured::String(text) => Value::Text(text.as_str()),
        Configured::Array(list) => return configured_list(out, name, list),
        other => return attribute(out, 1, name, Value::Text(&other.to_string())),
    };
    attribute(out, 1, name, simple);
}

fn configured_list(out: &mut Vec<u8>, name: &str, list: &Array) {
    message(out, 1, |out| {
        bytes(out, 1, name.as_bytes());
        message(out, 2, |out| match list {
            Array::Bool(values) => array(out, values.iter().map(|value| Value::Bool(*value))),
            Array::I64(values) => array(out, values.iter().map(|value| Value::Int(*value))),
            Array::F64(values) => array(out, values.iter().map(|value| Value::Double(*value))),
            Array::String(values) => array(out, values.iter().map(|value| Value::Text(value.as_str()))),
            other => bytes(out, 1, Configured::Array(other.clone()).to_string().as_bytes()),
        });
    });
}
