//! The question as a `CheckRequest`.

use std::collections::HashMap;

use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Peer, Request};
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};

use crate::gates::question::{Asker, Question};
use crate::message::write;

/// The namespace of `metadata_context`.
const NAMESPACE: &str = "portcullis";

/// The request that asks `question`, with arguments of at most `cap` bytes.
pub(super) fn check(question: &Question, cap: usize) -> CheckRequest {
    let arguments = question.arguments();
    let other = question.other_params().unwrap_or_default();
    let left_out = arguments.len().saturating_add(other.len()) > cap;
    let http = http(question, if left_out { None } else { Some((&arguments, &other)) });
    let source = Peer { principal: question.principal.name.clone(), ..Peer::default() };
    CheckRequest {
        attributes: Some(AttributeContext {
            source: Some(source),
            request: Some(Request { http: Some(http), ..Request::default() }),
            context_extensions: extensions(question, left_out),
            metadata_context: Some(Metadata {
                filter_metadata: HashMap::from([(NAMESPACE.to_owned(), metadata(question, left_out))]),
                ..Metadata::default()
            }),
            ..AttributeContext::default()
        }),
    }
}

fn http(question: &Question, shown: Option<(&str, &str)>) -> HttpRequest {
    let common =
        HttpRequest { id: question.decision.clone(), protocol: "HTTP/1.1".to_owned(), ..HttpRequest::default() };
    if let Some(call) = &question.http {
        let (method, host, path) = (question.method.clone(), call.authority.clone(), call.path.clone());
        return HttpRequest { method, host, path, scheme: "https".to_owned(), ..common };
    }
    let body = body(question, shown);
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut headers =
        HashMap::from([header("content-type", "application/json"), header("mcp-method", &question.method)]);
    if !question.named().is_empty() {
        headers.extend([header("mcp-name", question.named())]);
    }
    HttpRequest {
        method: "POST".to_owned(),
        host: question.server.to_string(),
        path: "/mcp".to_owned(),
        headers,
        size: i64::try_from(body.len()).unwrap_or(i64::MAX),
        body,
        ..common
    }
}

/// The MCP request as policies would write it down: no id, no `_meta`. `shown` is the arguments and, as an object, the
/// other members; nothing where they are too large.
fn body(question: &Question, shown: Option<(&str, &str)>) -> String {
    let mut out = br#"{"jsonrpc":"2.0","method":"#.to_vec();
    write::string(&mut out, &question.method);
    out.extend_from_slice(br#","params":"#);
    if question.has_arguments() {
        out.extend_from_slice(br#"{"name":"#);
        write::string(&mut out, question.named());
        if let Some((arguments, other)) = shown {
            out.extend_from_slice(br#","arguments":"#);
            out.extend_from_slice(arguments.as_bytes());
            if let Some(members) = other.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                out.push(b',');
                out.extend_from_slice(members.as_bytes());
            }
        }
        out.push(b'}');
    } else {
        out.extend_from_slice(shown.map_or("{}", |(arguments, _)| arguments).as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn extensions(question: &Question, left_out: bool) -> HashMap<String, String> {
    let Asker { name, issuer, subject, email, roles, permissions } = &question.principal;
    let capability = if let [only] = &question.capabilities[..] { only } else { "" };
    let all = [
        ("decision", question.decision.as_str()),
        ("server", &question.server),
        ("method", &question.method),
        // A policy over one capability must not pass a call that reaches another beside it.
        ("capability", capability),
        ("capabilities", &texts(&question.capabilities)),
        ("principal", name),
        ("issuer", issuer),
        ("subject", subject),
        ("email", email.as_deref().unwrap_or_default()),
        ("roles", &roles.join(",")),
        ("permissions", &permissions.join(",")),
        ("arguments_truncated", if left_out { "true" } else { "false" }),
    ];
    all.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Texts as a JSON array.
fn texts(all: &[std::sync::Arc<str>]) -> String {
    let mut out = vec![b'['];
    for (index, text) in all.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write::string(&mut out, text);
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_default()
}

fn metadata(question: &Question, left_out: bool) -> Struct {
    let asker = &question.principal;
    let principal = [
        ("name", text(&asker.name)),
        ("issuer", text(&asker.issuer)),
        ("subject", text(&asker.subject)),
        ("roles", list(&asker.roles)),
        ("permissions", list(&asker.permissions)),
    ];
    let email = asker.email.as_deref().map(|email| ("email", text(email)));
    fields([
        ("decision", text(&question.decision)),
        ("server", text(&question.server)),
        ("method", text(&question.method)),
        ("capabilities", list(&question.capabilities)),
        ("arguments_truncated", Value { kind: Some(Kind::BoolValue(left_out)) }),
        ("principal", Value { kind: Some(Kind::StructValue(fields(principal.into_iter().chain(email)))) }),
    ])
}

fn fields(all: impl IntoIterator<Item = (&'static str, Value)>) -> Struct {
    Struct { fields: all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

fn text(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}

fn list(all: &[std::sync::Arc<str>]) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values: all.iter().map(|item| text(item)).collect() })) }
}
