use std::collections::BTreeMap;

use super::check;
use crate::message::headers::{Header, Headers};
use crate::message::json::{Document, Limits};
use crate::policy::{Kind, Label};
use crate::record::{Definitions, Digest, Record, RecordFault, RecordSource};
use crate::refusal::{Addressee, Denials, Reason, Refusal, render};

/// Tools by name with their members beside the name, for example `"inputSchema": {}`.
fn record(tools: &[(&str, &str)]) -> (Record, Vec<RecordFault>) {
    let limits = Limits { depth: 128, nodes: 1 << 16 };
    let mut capabilities = BTreeMap::new();
    let mut definitions = Vec::new();
    for (name, members) in tools {
        let definition = format!(r#"{{"name": "{name}", {members}}}"#);
        let document = Document::read(definition.clone().into_bytes(), limits).expect("JSON");
        let digest = Digest::of(document.root()).expect("canonical").0;
        let price =
            serde_json::from_str(&format!(r#"{{"permission": "use", "digest": "{digest}"}}"#)).expect("a price");
        capabilities.insert(format!("tool:{name}"), price);
        definitions.push(format!(r#""tool:{name}": {definition}"#));
    }
    let text = format!(r#"{{"definitions": {{{}}}}}"#, definitions.join(", "));
    let source = RecordSource { recorded: None, definitions: "x.json".into(), capabilities };
    Record::build(&source, &Definitions::read(text.into_bytes()).expect("definitions")).expect("a record")
}

fn called(record: &Record, tool: &str, params: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
    let params = Document::read(params.as_bytes().to_vec(), Limits { depth: 64, nodes: 1 << 16 }).expect("JSON");
    let header = |(name, value): &(&str, &str)| Header::new(name, value.as_bytes());
    let headers = Headers::new(headers.iter().map(header).collect());
    check(record, &Label::new(Kind::Tool, tool), Some(params.root()), &headers)
}

#[track_caller]
fn refused(outcome: Result<(), Refusal>, reason: Reason) -> String {
    let refusal = outcome.expect_err("a refusal");
    assert_eq!(refusal.reason, reason, "{refusal:?}");
    let to = Addressee { id: Some("1"), method: "tools/call" };
    let rendered = render(&refusal, Denials::default(), to, "d");
    assert_eq!(rendered.tier, crate::refusal::frame::Tier::Full, "{refusal:?}");
    String::from_utf8(rendered.body).expect("UTF-8")
}

const SEARCH: (&str, &str) = (
    "search",
    r#""inputSchema": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}, "required": ["query"], "additionalProperties": false}"#,
);

#[test]
fn arguments_invalid_names_tool_place_and_rule() {
    let (record, warnings) = record(&[SEARCH]);
    assert_eq!(warnings, []);
    let frame = refused(
        called(&record, "search", r#"{"arguments": {"query": "q", "limit": 0}}"#, &[]),
        Reason::ArgumentsInvalid,
    );
    let expected = concat!(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The arguments of the tool 'search' do not fit its "#,
        r#"approved inputSchema: at /limit: the value is less than the minimum of 1 (rule: minimum). Correct the arguments "#,
        r#"and call again.","data":{"error":"arguments.invalid","plugin":"arguments","details":{"errors":[{"pointer":"#,
        r#""/limit","rule":"minimum","message":"the value is less than the minimum of 1"}]},"decision":"d"}}}"#
    );
    assert_eq!(frame, expected);
    assert!(called(&record, "search", r#"{"arguments": {"query": "q", "limit": 1e0}}"#, &[]).is_ok());
}

#[test]
fn absent_arguments_are_an_empty_object_and_others_no_object() {
    let (record, _) = record(&[SEARCH, ("any", r#""inputSchema": {"type": "object"}"#), ("old", r#""title": "Old""#)]);
    assert!(refused(called(&record, "search", "{}", &[]), Reason::ArgumentsInvalid).contains("required"));
    for tool in ["any", "old"] {
        assert!(called(&record, tool, "{}", &[]).is_ok(), "{tool}");
        assert!(called(&record, tool, r#"{"arguments": {"x": [1]}}"#, &[]).is_ok(), "{tool}");
        for other in ["null", "[]", "\"{}\"", "0", "false"] {
            let outcome = called(&record, tool, &format!(r#"{{"arguments": {other}}}"#), &[]);
            let frame = refused(outcome, Reason::ArgumentsInvalid);
            assert!(frame.contains("the arguments must be an object") && frame.contains(r#""pointer":"""#), "{frame}");
        }
    }
}

#[test]
fn details_hold_at_most_eight_errors_and_fit_the_frame() {
    let (record, _) = record(&[("t", r#""inputSchema": {"additionalProperties": {"type": "string"}}"#)]);
    // Names that grow sixfold when they are escaped.
    let members: Vec<String> = (0..30).map(|n| format!("\"{}{n}\": 1", "\\u0001".repeat(200))).collect();
    let outcome = called(&record, "t", &format!(r#"{{"arguments": {{{}}}}}"#, members.join(",")), &[]);
    let frame = refused(outcome, Reason::ArgumentsInvalid);
    let document = Document::read(frame.into_bytes(), Limits { depth: 8, nodes: 1000 }).expect("JSON");
    let errors = document.root().path(&["error", "data", "details", "errors"]).expect("errors");
    assert!((1..8).contains(&errors.len()), "{errors:?}");
    let members: Vec<String> = (0..30).map(|n| format!("\"p{n}\": 1")).collect();
    let outcome = called(&record, "t", &format!(r#"{{"arguments": {{{}}}}}"#, members.join(",")), &[]);
    assert_eq!(refused(outcome, Reason::ArgumentsInvalid).matches("\"pointer\"").count(), 8);
}

#[test]
fn arguments_uncheckable_refuses_the_tool_and_no_other() {
    let broken = r#""inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}"#;
    let (record, warnings) = record(&[SEARCH, ("broken", broken)]);
    let [RecordFault::Definitions { at, message }] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    assert!(message.starts_with("tool:broken: its inputSchema cannot be checked, so every call of it is refused: "));
    assert!(*at > 0, "{at}");
    let frame = refused(called(&record, "broken", "{}", &[]), Reason::ArgumentsUncheckable);
    assert!(
        frame.contains("'broken'") && frame.contains("tell the operator") && !frame.contains("127.0.0.1"),
        "{frame}"
    );
    assert!(called(&record, "search", r#"{"arguments": {"query": "q"}}"#, &[]).is_ok());
    refused(called(&record, "unrecorded", "{}", &[]), Reason::ArgumentsUncheckable);
}

#[test]
fn a_check_that_runs_out_is_uncheckable() {
    let tool = r#""inputSchema": {"type": "object", "properties": {"n": {"maximum": 1}}}"#;
    let (record, _) = record(&[("t", tool)]);
    let huge = format!(r#"{{"arguments": {{"n": 1e{}}}}}"#, "9".repeat(40));
    let frame = refused(called(&record, "t", &huge, &[]), Reason::ArgumentsUncheckable);
    assert!(frame.contains("cannot be checked") || frame.contains("too large or too intricate"), "{frame}");
}

#[test]
fn headers_mismatch_when_a_mirrored_argument_lies() {
    let tool =
        r#""inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}"#;
    let (record, _) = record(&[("t", tool)]);
    let arguments = r#"{"arguments": {"region": " \u00e9"}}"#;
    let good = [("mcp-param-region", "=?base64?IMOp?="), ("mcp-param-else", "x")];
    assert!(called(&record, "t", arguments, &good).is_ok());
    for headers in [&[][..], &[("mcp-param-region", "us")], &[("mcp-param-region", "=?base64?IMOp")]] {
        let frame = refused(called(&record, "t", arguments, headers), Reason::HeadersMismatch);
        assert!(frame.contains("-32020") && frame.contains(r#""header":"Mcp-Param-Region""#), "{frame}");
        assert!(!frame.contains("\\u00e9") && !frame.contains('é'), "{frame}");
    }
    refused(called(&record, "t", "{}", &[("mcp-param-region", "us")]), Reason::HeadersMismatch);
    assert!(called(&record, "t", "{}", &[]).is_ok());
}

#[test]
fn a_tool_may_be_called_anything() {
    let schema = r#""inputSchema": {"required": ["a"]}"#;
    let names = ["__proto__", "prompt:x", "wörterbuch", "constructor"];
    let (record, _) = record(&names.map(|name| (name, schema)));
    for name in names {
        assert!(called(&record, name, r#"{"arguments": {"a": 1}}"#, &[]).is_ok(), "{name}");
        let frame = refused(called(&record, name, r#"{"arguments": {}}"#, &[]), Reason::ArgumentsInvalid);
        assert!(frame.contains(&format!("'{name}'")), "{frame}");
    }
}

#[test]
fn headers_mismatch_when_a_mirrored_header_has_a_look_alike() {
    let property = |name: &str| format!(r#""{name}": {{"type": "string", "x-mcp-header": "{name}"}}"#);
    let schema = |names: &[&str]| {
        let properties: Vec<String> = names.iter().map(|name| property(name)).collect();
        format!(r#""inputSchema": {{"type": "object", "properties": {{{}}}}}"#, properties.join(", "))
    };
    let arguments = r#"{"arguments": {"tenant-id": "a"}}"#;
    let (own, other) = (("mcp-param-tenant-id", "a"), ("mcp-param-tenant_id", "b"));
    let (one, _) = record(&[("t", &schema(&["tenant-id"]))]);
    assert!(called(&one, "t", arguments, &[own]).is_ok());
    let frame = refused(called(&one, "t", arguments, &[own, other]), Reason::HeadersMismatch);
    assert!(frame.contains("Mcp-Param-tenant-id"), "{frame}");
    // Also where its argument is not there, so that its own header must not be.
    refused(called(&one, "t", "{}", &[other]), Reason::HeadersMismatch);
    assert!(called(&one, "t", "{}", &[("mcp-param-tenant-ids", "b")]).is_ok());
    // Where both are annotated, each is compared with its own argument.
    let (both, _) = record(&[("t", &schema(&["tenant-id", "tenant_id"]))]);
    let arguments = r#"{"arguments": {"tenant-id": "a", "tenant_id": "b"}}"#;
    assert!(called(&both, "t", arguments, &[own, other]).is_ok());
}
