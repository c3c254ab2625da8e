use super::*;
use crate::message::json::Limits;
use crate::policy::Kind;
use crate::screen::config::DetectorsSource;

fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 64, nodes: 10_000 }).expect(text)
}

fn schema(text: &str) -> Result<Schema, Uncompilable> {
    Schema::compile(document(text).root())
}

/// What becomes of an answer of the tool `x` or the prompt `x`.
fn screened(method: Method, schema: Option<&Result<Schema, Uncompilable>>, text: &str) -> Answer {
    let detectors = Detectors::compile(&DetectorsSource::default()).expect("compiles");
    let kind = if method == Method::PromptsGet { Kind::Prompt } else { Kind::Tool };
    let label = matches!(method, Method::ToolsCall | Method::PromptsGet).then(|| Label::new(kind, "x"));
    result(&detectors, method, label.as_ref(), schema, document(text)).expect("no conflict")
}

/// As large as an answer may be, and with more to look at than any request.
#[test]
fn a_large_output_can_be_checked() {
    let row = r#"{"id":1,"name":"printer","tags":["a","b"]}"#;
    let rows = vec![row; 100_000].join(",");
    let text = format!(r#"{{"result":{{"structuredContent":[{rows},"{}"]}}}}"#, "x".repeat(3 << 20));
    let document = Document::read(text.into_bytes(), Limits { depth: 64, nodes: 1 << 22 }).expect("JSON");
    let row = r#"{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","maxLength":9},"tags":{"items":{"type":"string"}}}}"#;
    let schema = schema(&format!(r#"{{"items":{{"anyOf":[{row},{{"type":"string","minLength":1000000}}]}}}}"#));
    let detectors = Detectors::compile(&DetectorsSource::default()).expect("compiles");
    let answer = result(&detectors, Method::ToolsCall, None, Some(&schema), document).expect("clean");
    assert_eq!((answer.rewritten, answer.screened), (false, None));
}

/// The same bytes in the same memory.
#[test]
fn a_clean_answer_is_not_copied() {
    let source = document(r#"{"result":{"content":[{"type":"text","text":"é"}],"structuredContent":{"a":1.0}}}"#);
    let (at, text) = (source.text().as_ptr(), source.text().to_owned());
    let detectors = Detectors::compile(&DetectorsSource::default()).expect("compiles");
    let schema = schema(r#"{"required":["a"]}"#);
    let answer = result(&detectors, Method::ToolsCall, None, Some(&schema), source).expect("clean");
    assert_eq!((answer.bytes.as_ptr(), answer.rewritten, answer.screened), (at, false, None));
    assert_eq!(answer.bytes, text.as_bytes());
}

#[test]
fn each_method_has_its_own_place() {
    for (method, text, action) in [
        (Method::ToolsCall, r#"{"result":{"content":[],"_meta":{"a":"<system>"}}}"#, Screened::Notice),
        (Method::ToolsCall, r#"{"result":{"structuredContent":"<system>"}}"#, Screened::Notice),
        (Method::ToolsCall, r#"{"result":{"isError":true,"content":["<system>"]}}"#, Screened::Notice),
        (Method::ToolsCall, r#"{"result":{"content":"<system>"}}"#, Screened::Counted),
        (Method::ToolsCall, r#"{"result":{"resultType":"input_required","a":"<system>"}}"#, Screened::Counted),
        (Method::PromptsGet, r#"{"result":{"messages":[],"description":"<system>"}}"#, Screened::Notice),
        (Method::PromptsGet, r#"{"result":{"description":"<system>"}}"#, Screened::Counted),
        (Method::Complete, r#"{"result":{"completion":{"values":["<system>"]}}}"#, Screened::Counted),
        (Method::ResourcesRead, r#"{"result":{"contents":["<system>"]}}"#, Screened::Counted),
    ] {
        let answer = screened(method, None, text);
        assert_eq!(answer.screened, Some((action, "text addressed to the model")), "{text}");
        let rewritten = action == Screened::Notice || method == Method::ResourcesRead;
        assert_eq!((answer.rewritten, answer.bytes == text.as_bytes()), (rewritten, !rewritten), "{text}");
    }
}

#[test]
fn only_a_call_owes_an_output_and_a_schema_that_does_not_compile_lets_none_pass() {
    let (integer, broken) = (schema(r#"{"type":"integer"}"#), schema(r#"{"type":"nonsense"}"#));
    let small = schema(r#"{"maximum":7}"#);
    assert!(broken.is_err());
    let good = r#"{"result":{"structuredContent":1e3}}"#;
    for (schema, method, text, withheld) in [
        (&integer, Method::ToolsCall, good, None),
        (&integer, Method::ToolsCall, r#"{"result":{"structuredContent":1.0000000000000001}}"#, Some(Fault::Broken)),
        (&integer, Method::ToolsCall, r#"{"result":{"content":["<system>"]}}"#, Some(Fault::Missing)),
        (
            &small,
            Method::ToolsCall,
            r#"{"result":{"structuredContent":1e99999999999999999999999999999999}}"#,
            Some(Fault::Uncheckable),
        ),
        (&broken, Method::ToolsCall, good, Some(Fault::Uncheckable)),
        (&broken, Method::ToolsCall, r#"{"result":{"isError":true}}"#, None),
        (&broken, Method::PromptsGet, r#"{"result":{"messages":[]}}"#, None),
    ] {
        let answer = screened(method, Some(schema), text);
        assert_eq!(answer.screened, withheld.map(|fault| (Screened::Withheld, why(fault))), "{text}");
        assert_eq!((answer.rewritten, answer.bytes == text.as_bytes()), (withheld.is_some(), withheld.is_none()));
    }
}

#[test]
fn a_resource_read_is_private() {
    for (text, out) in [
        (r#"{"result":{"contents":[]}}"#, r#"{"result":{"contents":[],"cacheScope":"private"}}"#),
        (r#"{"result":{"cacheScope": "public" ,"n":1.0}}"#, r#"{"result":{"cacheScope": "private" ,"n":1.0}}"#),
        (r#"{"result":{"cacheScope":"pr\u0069vate"}}"#, r#"{"result":{"cacheScope":"pr\u0069vate"}}"#),
        (r#"{"result":{"resultType":"input_required"}}"#, r#"{"result":{"resultType":"input_required"}}"#),
    ] {
        let answer = screened(Method::ResourcesRead, None, text);
        assert_eq!(answer.bytes, out.as_bytes());
        assert_eq!((answer.rewritten, answer.screened), (text != out, None));
    }
}

#[test]
fn text_without_a_place_is_counted() {
    let detectors = Detectors::compile(&DetectorsSource::default()).expect("compiles");
    let error = document("{\"message\":\"x\u{200B}\"}");
    assert_eq!(text(&detectors, error.root()).map(|(action, _)| action), Some(Screened::Counted));
    assert_eq!(text(&detectors, document("{}").root()), None);
}
