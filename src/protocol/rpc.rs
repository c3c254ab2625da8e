//! The JSON-RPC envelope of a request or notification (JSON-RPC 2.0 §4, narrowed by MCP: one message, params by name).

use crate::message::json::{Kind, Value};

/// The id of a request: a string or an integer, kept as the caller wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Id<'a>(Value<'a>);

impl<'a> Id<'a> {
    /// Reads an id. Fractions, exponents, booleans, null and containers are none.
    #[must_use]
    pub fn read(value: Value<'a>) -> Option<Self> {
        let legal = match value.kind() {
            Kind::String => true,
            Kind::Number => value.raw().bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'),
            _ => false,
        };
        legal.then_some(Self(value))
    }

    /// The bytes as they stand, to be echoed.
    #[must_use]
    pub fn raw(self) -> &'a str {
        self.0.raw()
    }

    /// The id as an owned value that compares by decoded value.
    #[must_use]
    pub fn key(self) -> IdKey {
        match self.0.as_str() {
            Some(text) => IdKey::Text(text.to_owned()),
            None => IdKey::Integer(self.0.raw().to_owned()),
        }
    }
}

/// An id by its decoded value: `"a"` and `"\u0061"` are one id, `1` and `"1"` are two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdKey {
    /// A string id, decoded.
    Text(String),
    /// An integer id, its digits.
    Integer(String),
}

impl IdKey {
    /// The id as text, whatever its kind.
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Integer(text) => text,
        }
    }

    /// Whether an answer's id is this one.
    #[must_use]
    pub fn matches(&self, other: Value<'_>) -> bool {
        match (self, other.kind()) {
            (Self::Text(own), Kind::String) => other.as_str() == Some(own),
            (Self::Integer(own), Kind::Number) => crate::message::number::equal(own, other.raw()),
            _ => false,
        }
    }
}

/// A request (with an id) or a notification.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The id; `None` for a notification.
    pub id: Option<Id<'a>>,
    /// The method, not empty.
    pub method: &'a str,
    /// `params`, an object when present.
    pub params: Option<Value<'a>>,
}

/// Why a JSON value is not one request or notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A JSON array.
    #[error("expected one JSON-RPC message, got a batch")]
    Batch,
    /// Another shape.
    #[error("{0}")]
    Invalid(&'static str),
}

impl<'a> Message<'a> {
    /// Reads the envelope.
    ///
    /// # Errors
    /// [`Fault`] with what was expected. A response is not a request: MCP 2026-07-28 has no client-posted responses.
    pub fn read(root: Value<'a>) -> Result<Self, Fault> {
        match root.kind() {
            Kind::Object => {}
            Kind::Array => return Err(Fault::Batch),
            _ => return Err(Fault::Invalid("expected a JSON object")),
        }
        let (mut version, mut id, mut method, mut params) = (None, None, None, None);
        for (key, value) in root.entries() {
            match key.as_str() {
                Some("jsonrpc") => version = Some(value),
                Some("id") => id = Some(value),
                Some("method") => method = Some(value),
                Some("params") => params = Some(value),
                _ => return Err(Fault::Invalid("expected no member beside jsonrpc, id, method and params")),
            }
        }
        if version.and_then(|version| version.as_str()) != Some("2.0") {
            return Err(Fault::Invalid("expected \"jsonrpc\":\"2.0\""));
        }
        let method = match method.and_then(|method| method.as_str()) {
            Some(method) if !method.is_empty() => method,
            _ => return Err(Fault::Invalid("expected \"method\" to be a string that is not empty")),
        };
        if params.is_some_and(|params| params.kind() != Kind::Object) {
            return Err(Fault::Invalid("expected \"params\" to be an object"));
        }
        let id = match id {
            None => None,
            Some(value) => match Id::read(value) {
                Some(id) => Some(id),
                None => return Err(Fault::Invalid("expected \"id\" to be a string or an integer")),
            },
        };
        Ok(Self { id, method, params })
    }
}
