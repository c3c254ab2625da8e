use super::rpc::{Fault, Message};
use super::target::{self, Target};
use super::{Id, Method, keys, routing, version};
use crate::message::json::{Document, Limits};

fn read(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 32, nodes: 1000 }).expect(text)
}

#[test]
fn ids_are_strings_and_integers() {
    for (text, legal) in [
        ("1", true),
        ("-7", true),
        ("9007199254740993", true),
        ("\"\"", true),
        ("\"1\"", true),
        ("1.0", false),
        ("1e3", false),
        ("true", false),
        ("null", false),
        ("[1]", false),
        ("{}", false),
    ] {
        let document = read(text);
        assert_eq!(Id::read(document.root()).map(Id::raw), legal.then_some(text), "{text}");
    }
}

#[test]
fn ids_compare_by_decoded_value() {
    let matches = |a: &str, b: &str| {
        let (a, b) = (read(a), read(b));
        Id::read(a.root()).unwrap().key().matches(b.root())
    };
    assert!(matches("\"ab\"", "\"a\\u0062\""));
    assert!(matches("1", "1"));
    assert!(!matches("1", "\"1\""));
    assert!(!matches("9007199254740993", "9007199254740992"));
}

#[test]
fn a_message_is_one_request_or_notification() {
    let fault = |text: &str| Message::read(read(text).root()).err();
    assert_eq!(fault("[]"), Some(Fault::Batch));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","method":"x"}"#), None);
    for text in [
        "1",
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","extra":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        assert!(matches!(fault(text), Some(Fault::Invalid(_))), "{text}");
    }
}

#[test]
fn routing_values_decode_as_the_specification_tabulates() {
    let decode = |value: &str| routing::decode(value.as_bytes()).ok().map(std::borrow::Cow::into_owned);
    for (value, text) in [
        ("us-west1", Some("us-west1")),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", Some("Hello, 世界")),
        ("=?base64?IHBhZGRlZCA=?=", Some(" padded ")),
        ("=?base64?bGluZTEKbGluZTI=?=", Some("line1\nline2")),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", Some("=?base64?literal?=")),
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVs!!!bG8=?=", None),
        ("=?base64?/w==?=", None),
        ("=?base64?SGVsbG9=?=", None),
        ("SGVsbG8=", Some("SGVsbG8=")),
        ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
        ("=?BASE64?SGVsbG8=?=", Some("=?BASE64?SGVsbG8=?=")),
        ("", Some("")),
        ("=?base64??=", Some("")),
        ("=?base64?=", None),
        ("us west 1", Some("us west 1")),
        ("  foo\t", Some("foo")),
        ("käse", None),
    ] {
        assert_eq!(decode(value).as_deref(), text, "{value}");
    }
}

#[test]
fn older_is_a_date_before_ours() {
    for (text, older) in [
        ("2025-11-25", true),
        ("2024-11-05", true),
        ("2026-07-28", false),
        ("2027-01-01", false),
        ("v1", false),
        ("2025-11-2x", false),
        ("", false),
    ] {
        assert_eq!(version::is_older(text), older, "{text}");
    }
}

#[test]
fn case_variants_are_found_where_the_protocol_defines_keys() {
    let request = |text: &str| keys::request_variant(read(text).root()).map(str::to_owned);
    assert_eq!(request(r#"{"Method":"x"}"#).as_deref(), Some("Method"));
    assert_eq!(request(r#"{"params":{"Name":"x"}}"#).as_deref(), Some("Name"));
    assert_eq!(request("{\"params\":{\"argument\u{17F}\":{}}}").as_deref(), Some("argument\u{17F}"));
    assert_eq!(request(r#"{"params":{"_Meta":{}}}"#).as_deref(), Some("_Meta"));
    assert_eq!(request(r#"{"params":{"ref":{"URI":"x"}}}"#).as_deref(), Some("URI"));
    assert_eq!(request(r#"{"params":{"notifications":{"TaskIds":[]}}}"#).as_deref(), Some("TaskIds"));
    assert_eq!(request(r#"{"params":{"arguments":{"Name":1,"NAME":2},"name":"x"}}"#), None);
    let answer = |text: &str| keys::answer_variant(read(text).root()).map(str::to_owned);
    assert_eq!(answer(r#"{"result":{"tools":[],"Tools":[]}}"#).as_deref(), Some("Tools"));
}

#[test]
fn a_call_reaches_what_its_body_names() {
    let params = |text: &str| read(&format!(r#"{{"p":{text}}}"#));
    let of = |method, text: &str| {
        let document = params(text);
        format!("{:?}", target::of(method, document.root().get("p")))
    };
    assert_eq!(of(Method::ToolsCall, r#"{"name":"x"}"#), format!("{:?}", Target::Tool("x")));
    assert!(of(Method::ToolsCall, r#"{"name":5}"#).starts_with("Unnamed"));
    assert!(of(Method::ToolsCall, r#"{"name":""}"#).starts_with("Unnamed"));
    assert_eq!(of(Method::ResourcesRead, r#"{"uri":"a:b"}"#), format!("{:?}", Target::Resources(vec!["a:b"])));
    assert_eq!(
        of(Method::Complete, r#"{"ref":{"type":"ref/prompt","name":"x"}}"#),
        format!("{:?}", Target::Prompt("x"))
    );
    assert_eq!(
        of(Method::Complete, r#"{"ref":{"type":"ref/resource","uri":"a:{b}"}}"#),
        format!("{:?}", Target::Resources(vec!["a:{b}"]))
    );
    assert!(of(Method::Complete, r#"{"ref":{"type":"ref/tool","name":"x"}}"#).starts_with("Unnamed"));
    assert_eq!(of(Method::Listen, r#"{"notifications":{"toolsListChanged":true}}"#), "Baseline");
    assert!(of(Method::Listen, r#"{"notifications":{"taskIds":[]}}"#).starts_with("Priceless"));
    assert!(of(Method::Listen, r#"{"notifications":{"resourceSubscriptions":"a:b"}}"#).starts_with("Unnamed"));
    assert!(of(Method::Listen, r#"{"notifications":{"resourceSubscriptions":["a:b",1]}}"#).starts_with("Unnamed"));
    assert_eq!(
        of(Method::Listen, r#"{"notifications":{"resourceSubscriptions":["a:b","c:d"]}}"#),
        format!("{:?}", Target::Resources(vec!["a:b", "c:d"]))
    );
    assert_eq!(of(Method::ToolsList, "{}"), "Baseline");
}
