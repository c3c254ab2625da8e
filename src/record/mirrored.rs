//! Arguments that a client repeats in headers, so that something on the way can route by them (MCP 2026-07-28, Streamable
//! HTTP, "Custom headers": `x-mcp-header`).
//!
//! Whoever routes by such a header must be able to trust it, so it has to say what the body says. Recognised is every
//! annotation that is reachable from the root of an `inputSchema` through `properties` alone; headers that no annotation
//! names are left alone.

use std::borrow::Cow;

use crate::message::json::{Kind, Value};
use crate::message::number;

#[cfg(test)]
mod tests;

/// The keyword.
const ANNOTATION: &str = "x-mcp-header";
/// What stands in front of it in a header's name.
const PREFIX: &str = "mcp-param-";

/// The annotated parameters of one `inputSchema`.
#[derive(Debug, Default)]
pub struct Mirrored {
    parameters: Vec<Parameter>,
}

/// One annotated parameter.
#[derive(Debug, PartialEq, Eq)]
struct Parameter {
    /// Keys from the root of the arguments.
    path: Box<[Box<str>]>,
    /// The header's name, lower case.
    header: Box<str>,
    /// Its name as the annotation spells it.
    written: Box<str>,
}

/// An annotation that the specification does not allow; clients drop a tool that has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Misplaced {
    /// Offset of the annotation in the text of the document that was read.
    pub at: usize,
    /// What was expected, what came.
    pub message: String,
}

/// A header and an argument that disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Header mismatch: {header} {what}")]
pub struct Mismatch {
    /// The header, spelled as the annotation does.
    pub header: String,
    /// How it disagrees. Holds no value: arguments are not repeated.
    pub what: &'static str,
}

impl Mirrored {
    /// Collects the annotations of `schema`, and what is wrong with them. One whose name is no token is not recognised; every
    /// other one is held against its header, so that a faulty annotation cannot open a header to lies.
    #[must_use]
    pub fn of(schema: Value<'_>) -> (Self, Vec<Misplaced>) {
        let mut found = Self::default();
        let mut faults = Vec::new();
        found.collect(schema, &mut Vec::new(), &mut faults);
        (found, faults)
    }

    /// Whether there is nothing to compare.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Depth is that of the schema, which is bounded where it is read.
    fn collect(&mut self, schema: Value<'_>, path: &mut Vec<Box<str>>, faults: &mut Vec<Misplaced>) {
        for (key, property) in schema.get("properties").into_iter().flat_map(|properties| properties.entries()) {
            path.push(key.as_str().unwrap_or_default().into());
            if let Some(annotation) = property.get(ANNOTATION) {
                self.annotated(property, annotation, path, faults);
            }
            self.collect(property, path, faults);
            path.pop();
        }
    }

    fn annotated(
        &mut self,
        property: Value<'_>,
        annotation: Value<'_>,
        path: &[Box<str>],
        faults: &mut Vec<Misplaced>,
    ) {
        let mut fault = |expected: &str| {
            let message =
                format!("expected {expected}, found {ANNOTATION}: {}; clients drop the tool", annotation.raw());
            faults.push(Misplaced { at: annotation.span().start, message });
        };
        let Some(name) = annotation.as_str().filter(|name| is_token(name)) else {
            return fault("the name of a header (one or more token characters)");
        };
        let header = format!("{PREFIX}{}", name.to_ascii_lowercase()).into_boxed_str();
        if self.parameters.iter().any(|other| other.header == header) {
            fault("each header once in a schema");
        }
        if !matches!(property.get("type").and_then(|kind| kind.as_str()), Some("integer" | "string" | "boolean")) {
            fault("a parameter of type integer, string or boolean");
        }
        self.parameters.push(Parameter { path: path.into(), header, written: format!("Mcp-Param-{name}").into() });
    }

    /// What a client that follows the annotations sends with `arguments`: headers by lower-case name, values not yet encoded.
    #[must_use]
    pub fn headers(&self, arguments: Option<Value<'_>>) -> Vec<(&str, String)> {
        let said = |parameter: &'_ Parameter| {
            let value = parameter.of(arguments)?;
            Some(value.as_str().unwrap_or(value.raw()).to_owned())
        };
        self.parameters.iter().filter_map(|parameter| Some((&*parameter.header, said(parameter)?))).collect()
    }

    /// The parameter, as its annotation spells the header, whose header `header` (lower case) is to a server that takes `_` and
    /// `-` for the same, as those behind CGI-like gateways do; `None` where it is a parameter's very own.
    #[must_use]
    pub fn look_alike(&self, header: &str) -> Option<&str> {
        if self.parameters.iter().any(|parameter| *parameter.header == *header) {
            return None;
        }
        self.parameters.iter().find(|parameter| alike(&parameter.header, header)).map(|parameter| &*parameter.written)
    }

    /// Compares each annotated parameter of `arguments` with its header. `header` gives the decoded value under a lower-case
    /// name, an error for one that cannot be decoded.
    ///
    /// A value that is present and not `null` needs an equal header (integers compare by value); one that is absent needs that
    /// there is none.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn check<'h, E>(
        &self,
        arguments: Option<Value<'_>>,
        header: impl Fn(&str) -> Option<Result<Cow<'h, str>, E>>,
    ) -> Result<(), Mismatch> {
        for parameter in &self.parameters {
            parameter
                .check(arguments, header(&parameter.header))
                .map_err(|what| Mismatch { header: parameter.written.to_string(), what })?;
        }
        Ok(())
    }
}

impl Parameter {
    /// Its value among `arguments`; `None` for `null` too.
    fn of<'a>(&self, arguments: Option<Value<'a>>) -> Option<Value<'a>> {
        let value = self.path.iter().try_fold(arguments?, |value, key| value.get(key));
        value.filter(|value| !value.is_null())
    }

    fn check<E>(
        &self,
        arguments: Option<Value<'_>>,
        header: Option<Result<Cow<'_, str>, E>>,
    ) -> Result<(), &'static str> {
        match (self.of(arguments), header) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err("is there, but its argument is not"),
            (Some(_), None) => Err("is missing, but its argument is there"),
            (Some(_), Some(Err(_))) => Err("is neither plain text nor the Base64 form =?base64?…?="),
            (Some(value), Some(Ok(header))) if says(&header, value) => Ok(()),
            (Some(_), Some(Ok(_))) => Err("does not match its argument"),
        }
    }
}

/// Whether the decoded `header` stands for `value`.
fn says(header: &str, value: Value<'_>) -> bool {
    match value.kind() {
        Kind::String => value.as_str() == Some(header),
        Kind::Number => number::equal(header, value.raw()),
        Kind::Bool => value.raw() == header,
        Kind::Null | Kind::Array | Kind::Object => false,
    }
}

fn alike(one: &str, other: &str) -> bool {
    let dash = |byte: u8| if byte == b'_' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().map(dash).eq(other.bytes().map(dash))
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(token)
}
