use std::borrow::Cow;

use super::Mirrored;
use crate::message::json::{Document, Limits};

fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 64, nodes: 1 << 16 }).expect("JSON")
}

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"},
    "limit": {"type": "integer", "x-mcp-header": "limit"},
    "dry": {"type": "boolean", "x-mcp-header": "Method"},
    "to": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "To-City"}}},
    "free": {"type": "string"}
}}"#;

/// What comes of `arguments` with these headers; an undecodable one is written `!`.
fn check(arguments: &str, headers: &[(&str, &str)]) -> Result<(), String> {
    let (schema, arguments) = (document(SCHEMA), document(arguments));
    let (mirrored, faults) = Mirrored::of(schema.root());
    assert_eq!(faults, []);
    let header = |name: &str| {
        let (_, value) = headers.iter().find(|(own, _)| *own == name)?;
        Some(if *value == "!" { Err(()) } else { Ok(Cow::Borrowed(*value)) })
    };
    let arguments = (arguments.root().raw() != "null").then(|| arguments.root());
    mirrored.check(arguments, header).map_err(|mismatch| mismatch.to_string())
}

#[test]
fn an_argument_that_is_there_needs_its_header() {
    let all = [
        ("mcp-param-region", "us west"),
        ("mcp-param-limit", "42"),
        ("mcp-param-method", "true"),
        ("mcp-param-to-city", "世界"),
    ];
    let arguments = r#"{"region": "us west", "limit": 42, "dry": true, "to": {"city": "\u4e16界"}, "free": "x"}"#;
    assert_eq!(check(arguments, &all), Ok(()));
    for (without, named) in
        [(0, "Mcp-Param-Region"), (1, "Mcp-Param-limit"), (2, "Mcp-Param-Method"), (3, "Mcp-Param-To-City")]
    {
        let mut headers = all.to_vec();
        headers.remove(without);
        let expected = format!("Header mismatch: {named} is missing, but its argument is there");
        assert_eq!(check(arguments, &headers), Err(expected));
        let mut headers = all;
        headers[without].1 = "other";
        assert_eq!(check(arguments, &headers), Err(format!("Header mismatch: {named} does not match its argument")));
        headers[without].1 = "!";
        assert!(check(arguments, &headers).is_err_and(|text| text.contains("Base64")));
    }
}

#[test]
fn an_argument_that_is_absent_needs_that_its_header_is() {
    for arguments in ["null", "{}", r#"{"region": null}"#, r#"{"to": 1}"#, r#"{"to": {}}"#] {
        assert_eq!(check(arguments, &[("mcp-param-other", "x"), ("x-region", "y")]), Ok(()), "{arguments}");
    }
    let there = "Header mismatch: Mcp-Param-Region is there, but its argument is not";
    for arguments in ["null", "{}", r#"{"region": null}"#] {
        assert_eq!(check(arguments, &[("mcp-param-region", "")]), Err(there.into()), "{arguments}");
    }
}

#[test]
fn values_compare_as_what_they_are() {
    for (arguments, header, equal) in [
        (r#"{"limit": 42.0}"#, ("mcp-param-limit", "42"), true),
        (r#"{"limit": 42}"#, ("mcp-param-limit", "4.2e1"), true),
        (r#"{"limit": 9007199254740993}"#, ("mcp-param-limit", "9007199254740992"), false),
        (r#"{"limit": 42}"#, ("mcp-param-limit", "042"), false),
        (r#"{"limit": "42"}"#, ("mcp-param-limit", "42"), true),
        (r#"{"region": ""}"#, ("mcp-param-region", ""), true),
        (r#"{"region": "42"}"#, ("mcp-param-region", "42.0"), false),
        (r#"{"region": "US"}"#, ("mcp-param-region", "us"), false),
        (r#"{"dry": false}"#, ("mcp-param-method", "false"), true),
        (r#"{"dry": false}"#, ("mcp-param-method", "False"), false),
        (r#"{"region": ["us"]}"#, ("mcp-param-region", "[\"us\"]"), false),
        (r#"{"region": {}}"#, ("mcp-param-region", "{}"), false),
    ] {
        assert_eq!(check(arguments, &[header]).is_ok(), equal, "{arguments} {header:?}");
    }
}

/// Header names that a schema's annotations are recognised as, and how many of them are faulty.
fn recognised(schema: &str) -> (Vec<String>, usize) {
    let document = document(schema);
    let (mirrored, faults) = Mirrored::of(document.root());
    for fault in &faults {
        assert!(document.text()[fault.at..].starts_with(['"', '{', '7']), "{fault:?}");
    }
    (mirrored.parameters.iter().map(|parameter| parameter.header.to_string()).collect(), faults.len())
}

#[test]
fn only_what_properties_lead_to_is_recognised() {
    let there = r#"{"type": "string", "x-mcp-header": "A"}"#;
    for around in [
        "{\"items\": @}",
        "{\"properties\": {\"a\": {\"items\": @}}}",
        "{\"properties\": {\"a\": {\"anyOf\": [@]}}}",
        "{\"allOf\": [{\"properties\": {\"a\": @}}]}",
        "{\"if\": {\"properties\": {\"a\": @}}}",
        "{\"$defs\": {\"d\": @}, \"properties\": {\"a\": {\"$ref\": \"#/$defs/d\"}}}",
        "{\"additionalProperties\": @}",
        "{\"properties\": {\"a\": true}}",
        "true",
    ] {
        assert_eq!(recognised(&around.replace('@', there)), (vec![], 0), "{around}");
    }
    let nested = r#"{"properties": {"properties": {"properties": {"x-mcp-header": @}}}}"#.replace('@', there);
    assert_eq!(recognised(&nested), (vec!["mcp-param-a".to_owned()], 0));
    assert!(Mirrored::of(document("{}").root()).0.is_empty());
}

#[test]
fn faulty_annotations_are_told_and_open_nothing() {
    for name in ["\"\"", "\"a b\"", "\"a:b\"", "\"é\"", "\"a\\n\"", "7", "{}"] {
        let schema = format!(r#"{{"properties": {{"a": {{"type": "string", "x-mcp-header": {name}}}}}}}"#);
        assert_eq!(recognised(&schema), (vec![], 1), "{name}");
    }
    let twice = r#"{"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}}"#;
    assert_eq!(recognised(twice), (vec!["mcp-param-a".to_owned(); 2], 1));
    for kind in ["\"number\"", "\"object\"", "[\"string\", \"null\"]"] {
        let schema = format!(r#"{{"properties": {{"a": {{"type": {kind}, "x-mcp-header": "A"}}}}}}"#);
        assert_eq!(recognised(&schema), (vec!["mcp-param-a".to_owned()], 1), "{kind}");
    }
}

#[test]
fn what_a_client_would_send_is_what_is_demanded() {
    let (schema, arguments) = (
        document(SCHEMA),
        document(r#"{"region": "us west", "limit": 42, "dry": null, "to": {"city": "\u4e16界"}, "free": "x"}"#),
    );
    let (mirrored, _) = Mirrored::of(schema.root());
    let sent = mirrored.headers(Some(arguments.root()));
    let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let named: Vec<_> = sent.iter().map(|(name, value)| owned(name, value)).collect();
    let expected =
        [owned("mcp-param-region", "us west"), owned("mcp-param-limit", "42"), owned("mcp-param-to-city", "世界")];
    assert_eq!(named, expected);
    let header = |name: &str| {
        let (_, value) = sent.iter().find(|(own, _)| *own == name)?;
        Some(Ok::<_, ()>(Cow::Borrowed(value.as_str())))
    };
    assert_eq!(mirrored.check(Some(arguments.root()), header).map_err(|mismatch| mismatch.to_string()), Ok(()));
    assert_eq!(mirrored.headers(None), []);
}
