//! What is written, as Envoy's own types read it.

use std::borrow::Cow;
use std::collections::HashMap;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::service::ext_proc::v3 as envoy;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Phase;
use envoy_types::pb::envoy::r#type::v3 as http;
use envoy_types::pb::google::protobuf as google;
use envoy_types::pb::google::protobuf::value::Kind as GoogleKind;
use prost::Message as _;

use super::*;
use crate::exchange::{Immediate, Verdict};

fn read(reply: &Reply) -> envoy::ProcessingResponse {
    let (message, mut bytes) = (Message::of(reply), Vec::new());
    message.write(&mut bytes);
    assert_eq!(message.len(), bytes.len());
    envoy::ProcessingResponse::decode(bytes.as_slice()).expect("the same wire format")
}

fn metadata_of(fields: &[(&str, GoogleKind)]) -> google::Struct {
    let value = |kind: GoogleKind| google::Value { kind: Some(kind) };
    let fields = fields.iter().map(|(key, kind)| ((*key).to_owned(), value(kind.clone()))).collect();
    let ours = value(GoogleKind::StructValue(google::Struct { fields }));
    google::Struct { fields: HashMap::from([("portcullis".to_owned(), ours)]) }
}

fn edits() -> HeaderEdits {
    HeaderEdits { set: vec![("authorization", b"Bearer x".to_vec())], remove: vec!["cookie".into()] }
}

fn mutation() -> envoy::HeaderMutation {
    envoy::HeaderMutation { set_headers: vec![set("authorization", "Bearer x")], remove_headers: vec!["cookie".into()] }
}

fn set(key: &str, value: &str) -> core::HeaderValueOption {
    let header = core::HeaderValue { key: key.into(), value: String::new(), raw_value: value.into() };
    core::HeaderValueOption { header: Some(header), ..Default::default() }
}

#[test]
fn every_reply_is_the_message_that_envoy_reads() {
    let text = |text: &str| GoogleKind::StringValue(text.to_owned());
    let edited = || Some(envoy::CommonResponse { header_mutation: Some(mutation()), ..Default::default() });
    let mut said = verdict(true, Some("cases"));
    (said.method, said.capability) = (Cow::Borrowed("tools/call"), "tool:search".into());
    (said.principal, said.id) = ("ana@acme.com".into(), "d1".to_owned());
    let all = Some(metadata_of(&[
        ("decided", GoogleKind::BoolValue(true)),
        ("server", text("cases")),
        ("decision", text("allow")),
        ("method", text("tools/call")),
        ("capability", text("tool:search")),
        ("principal", text("ana@acme.com")),
        ("id", text("d1")),
    ]));
    let body = Phase::RequestBody(envoy::BodyResponse { response: edited() });
    assert_eq!(
        read(&Reply::RequestBody { edits: edits(), verdict: said.clone() }),
        envoy::ProcessingResponse { response: Some(body), dynamic_metadata: all.clone(), ..Default::default() }
    );
    let head = Phase::RequestHeaders(envoy::HeadersResponse { response: None });
    let undecided = Some(metadata_of(&[("decided", GoogleKind::BoolValue(false))]));
    assert_eq!(
        read(&Reply::RequestHeaders { edits: HeaderEdits::default(), verdict: verdict(false, None) }),
        envoy::ProcessingResponse { response: Some(head), dynamic_metadata: undecided, ..Default::default() }
    );
    let answer = Phase::ResponseHeaders(envoy::HeadersResponse { response: edited() });
    assert_eq!(
        read(&Reply::ResponseHeaders { edits: edits() }),
        envoy::ProcessingResponse { response: Some(answer), ..Default::default() }
    );
    for ends in [true, false] {
        let piece = envoy::StreamedBodyResponse { body: b"ab".to_vec(), end_of_stream: ends, ..Default::default() };
        let mutation = Some(envoy::body_mutation::Mutation::StreamedResponse(piece));
        let body_mutation = Some(envoy::BodyMutation { mutation });
        let response = Some(envoy::CommonResponse { body_mutation, ..Default::default() });
        let piece = Phase::ResponseBody(envoy::BodyResponse { response });
        assert_eq!(
            read(&Reply::ResponseBody { bytes: b"ab".to_vec(), ends }),
            envoy::ProcessingResponse { response: Some(piece), ..Default::default() }
        );
    }
    let trailers = Phase::ResponseTrailers(envoy::TrailersResponse::default());
    assert_eq!(
        read(&Reply::ResponseTrailers),
        envoy::ProcessingResponse { response: Some(trailers), ..Default::default() }
    );
    let immediate = Phase::ImmediateResponse(envoy::ImmediateResponse {
        status: Some(http::HttpStatus { code: 403 }),
        headers: Some(envoy::HeaderMutation { set_headers: vec![set("x-a", "b")], remove_headers: Vec::new() }),
        body: b"{}".to_vec(),
        details: "portcullis_x".into(),
        ..Default::default()
    });
    assert_eq!(
        read(&Reply::Immediate(Immediate {
            status: 403,
            headers: vec![("x-a", "b".to_owned())],
            body: b"{}".to_vec(),
            details: "portcullis_x".to_owned(),
            verdict: said,
        })),
        envoy::ProcessingResponse { response: Some(immediate), dynamic_metadata: all, ..Default::default() }
    );
}

/// The two keys of the second lock, as a reply sets them.
fn keys(reply: &Reply) -> (Option<bool>, Option<String>) {
    let metadata = read(reply).dynamic_metadata.expect("metadata");
    let Some(GoogleKind::StructValue(ours)) = metadata.fields["portcullis"].kind.clone() else {
        panic!("expected a struct")
    };
    let decided = match ours.fields.get("decided").and_then(|value| value.kind.clone()) {
        Some(GoogleKind::BoolValue(decided)) => Some(decided),
        _ => None,
    };
    let server = match ours.fields.get("server").and_then(|value| value.kind.clone()) {
        Some(GoogleKind::StringValue(server)) => Some(server),
        _ => None,
    };
    (decided, server)
}

fn verdict(decided: bool, server: Option<&str>) -> Verdict {
    Verdict {
        decided,
        decision: if decided { "allow" } else { "" },
        reason: None,
        code: None,
        server: server.map(Into::into),
        method: Cow::Borrowed(""),
        capability: "".into(),
        principal: "".into(),
        id: String::new(),
    }
}

#[test]
fn what_an_earlier_filter_planted_is_overwritten_before_and_with_the_verdict() {
    let undecided = Reply::RequestHeaders { edits: HeaderEdits::default(), verdict: verdict(false, None) };
    assert_eq!(keys(&undecided), (Some(false), None), "the lock asks for both keys, so one that says no keeps it shut");
    let passed = Reply::RequestHeaders { edits: HeaderEdits::default(), verdict: verdict(true, None) };
    assert_eq!(keys(&passed), (Some(true), Some(String::new())));
    let allowed = Reply::RequestBody { edits: HeaderEdits::default(), verdict: verdict(true, Some("cases")) };
    assert_eq!(keys(&allowed), (Some(true), Some("cases".to_owned())));
}

/// Envoy reads nothing else of such a message, and nothing in it may look like a verdict.
#[test]
fn more_time_is_no_reply() {
    let message = read(&Reply::MoreTime(Duration::from_millis(2500)));
    let time = message.override_message_timeout.expect("a time");
    assert_eq!((time.seconds, time.nanos), (2, 500_000_000));
    assert_eq!((message.response, message.dynamic_metadata), (None, None));
}
