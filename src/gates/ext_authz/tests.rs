use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{CheckResponse, DeniedHttpResponse, OkHttpResponse};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::rpc::Status;

use super::{Opinion, opinion, request};
use crate::gates::Question;
use crate::gates::opinion::Denial;
use crate::gates::tests::{plain, question, retry::retry};
use crate::refusal::GateCode;

fn header(name: &str, value: &str) -> HeaderValueOption {
    let header = HeaderValue { key: name.into(), value: value.into(), ..HeaderValue::default() };
    HeaderValueOption { header: Some(header), ..HeaderValueOption::default() }
}

fn answer(code: Option<i32>, response: Option<HttpResponse>) -> CheckResponse {
    let status = code.map(|code| Status { code, message: String::new(), details: Vec::new() });
    CheckResponse { status, http_response: response, ..CheckResponse::default() }
}

fn denied(body: &str, headers: Vec<HeaderValueOption>) -> HttpResponse {
    let status = Some(HttpStatus { code: 401 });
    HttpResponse::DeniedResponse(DeniedHttpResponse { status, headers, body: body.into() })
}

fn ok() -> HttpResponse {
    HttpResponse::OkResponse(OkHttpResponse::default())
}

fn word(answer: CheckResponse) -> String {
    match opinion(answer, false) {
        Opinion::Allow => "allow".into(),
        Opinion::Deny(denial) => denial.code.map_or("deny".into(), |code| code.as_str().to_owned()),
        Opinion::Answer(_) => "answer".into(),
        Opinion::Failed(_) => "failed".into(),
    }
}

#[test]
fn the_status_decides_and_a_contradiction_is_no_opinion() {
    for (code, response, expected) in [
        (Some(0), None, "allow"),
        (Some(0), Some(ok()), "allow"),
        (None, Some(ok()), "allow"),
        (None, None, "failed"),
        (Some(0), Some(denied("", vec![])), "failed"),
        (None, Some(denied("", vec![])), "failed"),
        (Some(7), Some(denied("", vec![])), "ext_authz.denied"),
        (Some(7), None, "ext_authz.denied"),
        (Some(16), Some(ok()), "ext_authz.denied"),
        (Some(13), Some(HttpResponse::ErrorResponse(DeniedHttpResponse::default())), "failed"),
        (Some(0), Some(HttpResponse::ErrorResponse(DeniedHttpResponse::default())), "failed"),
    ] {
        assert_eq!(word(answer(code, response.clone())), expected, "{code:?} {response:?}");
    }
}

#[test]
fn a_gate_decides_it_does_not_edit() {
    let one = || vec![header("x", "y")];
    for edits in [
        OkHttpResponse { headers: one(), ..OkHttpResponse::default() },
        OkHttpResponse { headers_to_remove: vec!["authorization".into()], ..OkHttpResponse::default() },
        OkHttpResponse { response_headers_to_add: one(), ..OkHttpResponse::default() },
        OkHttpResponse { query_parameters_to_remove: vec!["q".into()], ..OkHttpResponse::default() },
    ] {
        assert_eq!(word(answer(Some(0), Some(HttpResponse::OkResponse(edits)))), "ext_authz.edits");
    }
}

fn denial(body: &str, headers: Vec<HeaderValueOption>, pass: bool) -> Denial {
    match opinion(answer(Some(7), Some(denied(body, headers))), pass) {
        Opinion::Deny(denial) => *denial,
        other => panic!("expected a denial, got {other:?}"),
    }
}

#[test]
fn a_denied_response_becomes_code_and_public_text() {
    let plain = denial(" not today\n", vec![header("Retry-After", "30")], false);
    assert_eq!((plain.text.as_deref(), plain.retry_after), (Some("not today"), Some(30)));
    let spoken = denial(
        r#"{"error":"opa.hours","message":"Closed.","description":"Opens at 9.","details":{"opens": 9.0},"x":1}"#,
        vec![],
        false,
    );
    assert_eq!(spoken.code.as_ref().map(GateCode::as_str), Some("opa.hours"));
    assert_eq!((spoken.text.as_deref(), spoken.description.as_deref()), (Some("Closed."), Some("Opens at 9.")));
    assert_eq!(spoken.details.as_deref(), Some(r#"{"opens": 9.0}"#));
    let wrong = denial(r#"{"error":"Not A Code"}"#, vec![], false);
    assert_eq!(wrong.code.as_ref().map(GateCode::as_str), Some("ext_authz.denied"));
    assert!(wrong.log.as_deref().is_some_and(|log| log.ends_with("got \"Not A Code\"")), "{:?}", wrong.log);
}

#[test]
fn a_challenge_is_dropped_unless_the_configuration_lets_it_pass() {
    let challenge = || vec![header("www-authenticate", "Bearer error=\"insufficient_user_authentication\"")];
    assert_eq!(denial("", challenge(), false).challenge, None);
    let passed = denial("", challenge(), true).challenge;
    assert_eq!(passed, Some((401, "Bearer error=\"insufficient_user_authentication\"".into())));
    assert_eq!(denial("", vec![header("www-authenticate", "a\r\nx: y")], true).challenge, None);
}

#[test]
fn the_facts_stand_where_such_servers_look() {
    let check = request::check(&question("update", r#"{"id":"7","n":1.0}"#), 1024);
    let attributes = check.attributes.expect("attributes");
    let http = attributes.request.and_then(|request| request.http).expect("a request");
    assert_eq!(
        http.body,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"update","arguments":{"id":"7","n":1.0}}}"#
    );
    assert_eq!(
        (http.method.as_str(), http.host.as_str(), http.headers["mcp-name"].as_str()),
        ("POST", "cases", "update")
    );
    let extension = |key: &str| attributes.context_extensions.get(key).map(String::as_str).unwrap_or_default();
    assert_eq!(
        ["server", "capability", "principal", "subject", "roles", "permissions", "arguments_truncated"].map(extension),
        ["cases", "tool:update", "ana@acme.com", "ana", "reader", "cases:read,cases:write", "false"]
    );
    let metadata = attributes.metadata_context.expect("metadata");
    assert!(metadata.filter_metadata["portcullis"].fields.contains_key("principal"));
    assert_eq!(extension("capabilities"), r#"["tool:update"]"#);
    // Of several none is the one.
    let both = vec!["resource:a".into(), "resource:b\"".into()];
    let several = Question { method: "resources/read".into(), capabilities: both, ..question("x", "{}") };
    let told = request::check(&several, 1024).attributes.expect("attributes").context_extensions;
    assert_eq!((told.get("capability"), told["capabilities"].as_str()), (None, r#"["resource:a","resource:b\""]"#));
    assert!(http.headers.keys().all(|name| ["content-type", "mcp-method", "mcp-name"].contains(&name.as_str())));
}

#[test]
fn arguments_over_the_cap_are_left_out_and_told() {
    let check = request::check(&question("update", r#"{"id":"7777777777"}"#), 10);
    let attributes = check.attributes.expect("attributes");
    let http = attributes.request.and_then(|request| request.http).expect("a request");
    assert_eq!(http.body, r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"update"}}"#);
    assert_eq!(attributes.context_extensions["arguments_truncated"], "true");
}

#[test]
fn plain_http_is_asked_as_what_it_is() {
    let attributes = request::check(&plain(), 1024).attributes.expect("attributes");
    let http = attributes.request.and_then(|request| request.http).expect("a request");
    assert_eq!((http.method.as_str(), http.host.as_str(), http.path.as_str()), ("GET", "api.acme.com", "/v1/x?y=1"));
    assert!(http.headers.is_empty() && http.body.is_empty());
}

#[test]
fn a_retry_shows_its_answers_and_state() {
    let body = |cap| {
        let attributes = request::check(&retry(), cap).attributes.expect("attributes");
        let told = attributes.context_extensions["arguments_truncated"].clone();
        (attributes.request.and_then(|request| request.http).expect("a request").body, told)
    };
    assert_eq!(
        body(1024),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"update","arguments":{"id":"7"},"requestState":"s\u0031","inputResponses":{"ok": true}}}"#.into(),
            "false".into()
        )
    );
    // One without the other would be half a call.
    assert_eq!(
        body(20),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"update"}}"#.into(), "true".into())
    );
}
