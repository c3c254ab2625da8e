//! OTLP's protobuf, appended to bytes as it stands on the wire: spans and log records are encoded once, from the record,
//! instead of being built as objects that are converted, measured and encoded.
//!
//! Numbers of fields are those of `opentelemetry/proto`; all used here are below 16, so a field's key is one byte.

#[cfg(test)]
mod tests;

use bytes::{BufMut, Bytes};
use opentelemetry::{Array, Value as Configured};
use opentelemetry_sdk::Resource;

/// Name of the instrumentation scope of everything.
const SCOPE: &str = "portcullis";

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const DELIMITED: u8 = 2;
const FIXED32: u8 = 5;

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

fn key(out: &mut Vec<u8>, field: u8, form: u8) {
    out.push(field << 3 | form);
}

/// A number in as few bytes as it needs, seven bits in each.
fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// A length; `usize` has at most 64 bits.
fn length(out: &mut Vec<u8>, length: usize) {
    varint(out, length as u64);
}

/// The bytes that a length takes.
const fn width(length: usize) -> usize {
    let bits = (usize::BITS - (length | 1).leading_zeros()) as usize;
    bits.div_ceil(7)
}

/// An enumeration or another small number.
pub(in crate::telemetry) fn number(out: &mut Vec<u8>, field: u8, number: u64) {
    key(out, field, VARINT);
    varint(out, number);
}

/// A time, in nanoseconds since 1970.
pub(in crate::telemetry) fn fixed64(out: &mut Vec<u8>, field: u8, number: u64) {
    key(out, field, FIXED64);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Flags.
pub(in crate::telemetry) fn fixed32(out: &mut Vec<u8>, field: u8, number: u32) {
    key(out, field, FIXED32);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Bytes, or a message that is encoded already.
pub(in crate::telemetry) fn bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    key(out, field, DELIMITED);
    length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Text; none where it is empty, which is the default.
pub(in crate::telemetry) fn text(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        bytes(out, field, text.as_bytes());
    }
}

/// A message of what `fill` appends. Its length is known afterwards: what takes more than one byte of it is moved up.
pub(in crate::telemetry) fn message(out: &mut Vec<u8>, field: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    key(out, field, DELIMITED);
    out.push(0);
    let start = out.len();
    fill(out);
    let (end, filled) = (out.len(), out.len().saturating_sub(start));
    let more = width(filled).saturating_sub(1);
    if more > 0 {
        out.resize(end.saturating_add(more), 0);
        out.copy_within(start..end, start.saturating_add(more));
    }
    let mut left = filled as u64;
    let place = out.get_mut(start.saturating_sub(1)..start.saturating_add(more)).unwrap_or_default();
    for byte in place {
        let low = left.to_le_bytes()[0] & 0x7F;
        left >>= 7;
        *byte = if left == 0 { low } else { low | 0x80 };
    }
}

/// An attribute (`KeyValue`) in this field.
pub(in crate::telemetry) fn attribute(out: &mut Vec<u8>, field: u8, name: &str, value: Value<'_>) {
    if let Value::Text(text) = value {
        // What most attributes are: their lengths are known, so nothing is moved.
        let any = 1 + width(text.len()) + text.len();
        let pair = 1 + width(name.len()) + name.len() + 1 + width(any) + any;
        out.reserve(pair.saturating_add(8));
        if let Some([pair, long, any, short]) = one_byte([pair, name.len(), any, text.len()]) {
            out.extend_from_slice(&[field << 3 | DELIMITED, pair, 1 << 3 | DELIMITED, long]);
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&[2 << 3 | DELIMITED, any, 1 << 3 | DELIMITED, short]);
            return out.extend_from_slice(text.as_bytes());
        }
        key(out, field, DELIMITED);
        length(out, pair);
        bytes(out, 1, name.as_bytes());
        key(out, 2, DELIMITED);
        length(out, any);
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
        let resource = self.resource.len() + 1 + width(scope) + scope + self.schema.len();
        let mut head = Vec::with_capacity(self.resource.len() + self.scope.len() + 32);
        key(&mut head, 1, DELIMITED);
        length(&mut head, resource);
        head.extend_from_slice(&self.resource);
        key(&mut head, 2, DELIMITED);
        length(&mut head, scope);
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
