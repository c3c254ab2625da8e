//! What a schema accepts, what it refuses, and what it says.

mod bounded;
mod numbers;

use super::{Failure, Schema, Uncompilable, Violation};
use crate::message::json::{Document, Limits};

fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 4096, nodes: 1 << 22 }).expect("JSON")
}

#[track_caller]
fn compiled(schema: &str) -> Schema {
    Schema::compile(document(schema).root()).unwrap_or_else(|error| panic!("{schema} does not compile: {error}"))
}

#[track_caller]
fn uncompilable(schema: &str) -> Uncompilable {
    Schema::compile(document(schema).root()).expect_err(schema)
}

fn check(schema: &str, instance: &str) -> Result<(), Violation> {
    compiled(schema).check(document(instance).root())
}

#[track_caller]
fn failures(schema: &str, instance: &str) -> Vec<Failure> {
    match check(schema, instance) {
        Err(Violation::Invalid(failures)) => failures,
        other => panic!("expected {instance} to break {schema}, got {other:?}"),
    }
}

#[track_caller]
fn told(schema: &str, instance: &str) -> String {
    let failures = failures(schema, instance);
    let Failure { pointer, rule, text } = &failures[0];
    format!("{pointer} {rule}: {text}")
}

const CALL: &str = r#"{
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 20},
        "limit": {"type": "integer", "minimum": 1},
        "a/b": {"items": {"enum": ["x", "y"]}}
    },
    "required": ["query"],
    "additionalProperties": false
}"#;

#[test]
fn a_failure_names_the_place_and_the_rule() {
    for (instance, expected) in [
        (r#"{"query": "q", "limit": 0}"#, "/limit minimum: the value is less than the minimum of 1"),
        (r#"{"query": "q", "limit": "3"}"#, "/limit type: the value is not of type \"integer\""),
        ("{}", " required: \"query\" is a required property"),
        (r#"{"query": ""}"#, "/query minLength: the value is shorter than 1 character"),
        (
            r#"{"query": "q", "secret": 1}"#,
            " additionalProperties: Additional properties are not allowed ('secret' was unexpected)",
        ),
        (r#"{"query": "q", "a/b": ["x", "z"]}"#, "/a~1b/1 enum: the value is not one of \"x\" or \"y\""),
        ("[]", " type: the value is not of type \"object\""),
    ] {
        assert_eq!(told(CALL, instance), expected, "{instance}");
    }
    assert_eq!(check(CALL, r#"{"query": "é👍", "limit": 3, "a/b": ["y"]}"#), Ok(()));
}

#[test]
fn at_most_eight_failures_are_told_and_all_are_short() {
    let items = (0..40).map(|_| format!("\"{}\"", "x".repeat(2000))).collect::<Vec<_>>().join(",");
    let schema = format!(r#"{{"items": {{"const": "{}"}}}}"#, "y".repeat(2000));
    let failures = failures(&schema, &format!("[{items}]"));
    assert_eq!(failures.len(), 8);
    assert_eq!(failures[7].pointer, "/7");
    assert!(failures.iter().all(|failure| failure.text.len() <= 260 && failure.text.ends_with('…')), "{failures:?}");
    let deep = format!(r#"{{"{}": {{"{}": 1}}}}"#, "é".repeat(200), "k".repeat(300));
    let schema = r#"{"additionalProperties": {"additionalProperties": {"type": "string"}}}"#;
    let pointer = &self::failures(schema, &deep)[0].pointer;
    assert!(pointer.len() <= 260 && pointer.ends_with('…'), "{pointer}");
}

#[test]
fn what_the_caller_sent_is_in_no_text() {
    let secret = "s3cr3t";
    for (schema, instance) in [
        (r#"{"type": "integer"}"#, r#""s3cr3t""#),
        (r#"{"type": ["integer", "null"]}"#, r#""s3cr3t""#),
        (r#"{"const": 1}"#, r#""s3cr3t""#),
        (r#"{"enum": [1, [2]]}"#, r#"["s3cr3t"]"#),
        (r#"{"pattern": "^a"}"#, r#""s3cr3t""#),
        (r#"{"format": "date"}"#, r#""s3cr3t""#),
        (r#"{"maxLength": 1}"#, r#""s3cr3t""#),
        (r#"{"uniqueItems": true}"#, r#"["s3cr3t", "s3cr3t"]"#),
        (r#"{"contains": {"type": "null"}}"#, r#"["s3cr3t"]"#),
        (r#"{"not": {"type": "string"}}"#, r#""s3cr3t""#),
        (r#"{"anyOf": [{"type": "null"}, {"type": "array"}]}"#, r#""s3cr3t""#),
        (r#"{"oneOf": [{"type": "null"}, {"type": "array"}]}"#, r#""s3cr3t""#),
        (r#"{"oneOf": [{"type": "string"}, true]}"#, r#""s3cr3t""#),
        (
            r#"{"items": [{}], "additionalItems": false, "$schema": "http://json-schema.org/draft-07/schema#"}"#,
            r#"[1, "s3cr3t"]"#,
        ),
        (r#"{"prefixItems": [{}], "unevaluatedItems": false}"#, r#"[1, "s3cr3t"]"#),
        (r#"{"dependentSchemas": {"a": {"maxProperties": 0}}}"#, r#"{"a": "s3cr3t"}"#),
        (r#"{"properties": {"a": false}}"#, r#"{"a": "s3cr3t"}"#),
        (r#"{"if": {"type": "string"}, "then": {"minLength": 9}}"#, r#""s3cr3t""#),
        ("false", r#""s3cr3t""#),
    ] {
        for Failure { rule, text, .. } in failures(schema, instance) {
            assert!(!text.contains(secret) && !text.contains("null were"), "{schema}: {text}");
            assert!(!rule.is_empty() && !text.is_empty(), "{schema}");
        }
    }
    let named = told(r#"{"propertyNames": {"maxLength": 2}}"#, r#"{"abc": 1}"#);
    assert_eq!(named, " propertyNames: the name of a property is not allowed: the name is longer than 2 characters");
}

#[test]
fn each_dialect_is_read_by_its_own_rules() {
    let dialect = |uri: &str, rest: &str| format!(r#"{{"$schema": "{uri}", {rest}}}"#);
    let tuple = r#""items": [{"type": "string"}]"#;
    for uri in [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        assert_eq!(check(&dialect(uri, tuple), r#"["a", 1]"#), Ok(()), "{uri}");
        assert_eq!(failures(&dialect(uri, tuple), "[1]")[0].pointer, "/0", "{uri}");
    }
    let prefix = r#""prefixItems": [{"type": "string"}]"#;
    let latest = "https://json-schema.org/draft/2020-12/schema";
    assert_eq!(failures(&dialect(latest, prefix), "[1]")[0].pointer, "/0");
    assert_eq!(failures(&format!("{{{prefix}}}"), "[1]")[0].pointer, "/0", "2020-12 is the default");
    assert_eq!(check(&dialect("http://json-schema.org/draft-06/schema#", prefix), "[1]"), Ok(()));
    // draft-07 ignores what stands beside `$ref`; 2019-09 does not.
    let beside = r##""definitions": {"any": {}}, "$ref": "#/definitions/any", "type": "string""##;
    assert_eq!(check(&dialect("http://json-schema.org/draft-07/schema#", beside), "1"), Ok(()));
    assert_eq!(failures(&dialect("https://json-schema.org/draft/2019-09/schema", beside), "1")[0].rule, "type");
}

#[test]
fn other_dialects_do_not_compile() {
    for uri in [
        "\"http://json-schema.org/draft-04/schema#\"",
        "\"https://example.com/own\"",
        "\"ftp://json-schema.org/draft-07/schema#\"",
        "\"\"",
        "7",
    ] {
        let schema = format!(r#"{{"type": "object", "$schema": {uri}}}"#);
        let error = uncompilable(&schema);
        assert_eq!(error.at, schema.find(uri).expect("there"), "{schema}");
        assert!(error.message.contains("2020-12") && error.message.contains(uri), "{error}");
    }
}

#[test]
fn formats_are_asserted() {
    for (format, good, bad) in [
        ("date-time", "2026-11-30T09:00:00Z", "yesterday"),
        ("date", "2026-11-30", "2026-11-31"),
        ("email", "ana@acme.com", "ana"),
        ("uri", "https://acme.com/x", "::"),
        ("uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
    ] {
        let schema = format!(r#"{{"format": "{format}"}}"#);
        assert_eq!(check(&schema, &format!("\"{good}\"")), Ok(()), "{format}");
        assert_eq!(failures(&schema, &format!("\"{bad}\""))[0].rule, "format", "{format}");
    }
    assert_eq!(check(r#"{"format": "of-our-own"}"#, "\"x\""), Ok(()), "unknown formats assert nothing");
}

#[test]
fn a_schema_that_breaks_its_meta_schema_is_told_where() {
    for (schema, at) in [
        (r#"{"properties": {"a": {"type": "strin"}}}"#, "\"strin\""),
        (r#"{"properties": {"a": {"minLength": -1}}}"#, "-1"),
        (r#"{"items": {"pattern": "("}}"#, "\"(\""),
        (r#"{"required": "query"}"#, "\"query\""),
        (r#"{"multipleOf": 0}"#, "0}"),
        ("[]", "[]"),
        ("\"object\"", "\"object\""),
    ] {
        let error = uncompilable(schema);
        assert_eq!(error.at, schema.find(at).expect("there"), "{schema}: {error}");
        assert!(error.message.starts_with("expected"), "{error}");
    }
}

#[test]
fn patterns_that_need_backtracking_do_not_compile() {
    for pattern in ["(?=a)b", "(a)\\\\1", "(?<!a)b"] {
        let error = uncompilable(&format!(r#"{{"properties": {{"a": {{"pattern": "{pattern}"}}}}}}"#));
        assert!(error.message.contains("regex"), "{pattern}: {error}");
    }
    assert_eq!(check(r#"{"pattern": "^\\d{3}$"}"#, "\"123\""), Ok(()));
    assert_eq!(failures(r#"{"pattern": "^\\d{3}$"}"#, "\"١٢٣\"")[0].rule, "pattern", "ECMA-262: ASCII digits");
}

#[test]
fn names_that_mean_something_elsewhere_mean_nothing_here() {
    let schema = r#"{"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "integer"}}, "required": ["__proto__"], "additionalProperties": false}"#;
    assert_eq!(check(schema, r#"{"__proto__": "x", "constructor": 1}"#), Ok(()));
    assert_eq!(told(schema, r#"{"__proto__": 1}"#), "/__proto__ type: the value is not of type \"string\"");
    assert_eq!(failures(schema, r#"{"constructor": 1}"#)[0].rule, "required");
    // What serde_json's own reader would take for a number or for another document.
    for name in ["$serde_json::private::Number", "$serde_json::private::RawValue", "$serde_json::private::N\\u0075mber"]
    {
        let instance = format!(r#"{{"{name}": "5"}}"#);
        assert_eq!(failures(r#"{"type": "number"}"#, &instance)[0].rule, "type", "{name}");
        assert_eq!(check(r#"{"type": "object", "minProperties": 1}"#, &instance), Ok(()), "{name}");
        assert_eq!(failures(&format!(r#"{{"const": {instance}}}"#), "5")[0].rule, "const", "{name}");
        assert_eq!(check(&format!(r#"{{"const": {instance}}}"#), &instance), Ok(()), "{name}");
        assert_eq!(check(&format!(r#"{{"enum": [{instance}]}}"#), &instance), Ok(()), "{name}");
    }
}

#[test]
fn equality_is_by_value() {
    let schema = r#"{"enum": [{"a": [1, "é"], "b": null}, true]}"#;
    for same in [r#"{"b": null, "a": [1.0, "\u00e9"]}"#, r#"{"a": [10e-1, "é"], "b": null}"#, "true"] {
        assert_eq!(check(schema, same), Ok(()), "{same}");
    }
    for other in
        [r#"{"a": [1, "é"]}"#, r#"{"a": ["é", 1], "b": null}"#, r#"{"a": [1, "é"], "c": null}"#, "1", "\"true\""]
    {
        assert_eq!(failures(schema, other)[0].rule, "enum", "{other}");
    }
}

#[test]
fn one_schema_serves_many_threads() {
    let schema = compiled(CALL);
    std::thread::scope(|scope| {
        for limit in 0..4 {
            let schema = &schema;
            scope.spawn(move || {
                let instance = document(&format!(r#"{{"query": "q", "limit": {limit}}}"#));
                for _ in 0..100 {
                    assert_eq!(schema.check(instance.root()).is_ok(), limit > 0);
                }
            });
        }
    });
}
