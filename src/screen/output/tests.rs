use super::*;
use crate::message::json::{Document, Kind, Limits};

/// A schema that wants an object.
fn object(value: Value<'_>) -> Result<(), Fault> {
    if value.kind() == Kind::Object { Ok(()) } else { Err(Fault::Broken) }
}

#[test]
fn a_completed_call_owes_what_was_approved() {
    for (result, judged) in [
        (r#"{"structuredContent":{"a":1}}"#, Ok(())),
        (r#"{"resultType":"complete","structuredContent":{},"isError":false}"#, Ok(())),
        (r#"{"structuredContent":[]}"#, Err(Fault::Broken)),
        (r#"{"structuredContent":null}"#, Err(Fault::Broken)),
        (r#"{"content":[]}"#, Err(Fault::Missing)),
        (r#"{"isError":"true","content":[]}"#, Err(Fault::Missing)),
        (r#"{"isError":1,"structuredContent":[]}"#, Err(Fault::Broken)),
        (r#"{"isError":true,"structuredContent":[]}"#, Ok(())),
        (r#"{"isError":true}"#, Ok(())),
        (r#"{"resultType":"input_required"}"#, Ok(())),
        (r#"{"resultType":"input_required","structuredContent":[]}"#, Ok(())),
    ] {
        let limits = Limits { depth: 8, nodes: 100 };
        let document = Document::read(result.as_bytes().to_vec(), limits).expect(result);
        assert_eq!(check(document.root(), object), judged, "{result}");
    }
}
