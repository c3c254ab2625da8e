use proptest::prelude::*;
use serde_json::Value as Json;

use super::{compact, definitions_file};
use crate::message::testing::{document, object, spell};
use crate::policy::Label;
use crate::record::{Definitions, differences};

#[test]
fn only_white_space_changes() {
    let served = document(
        "{\"b\":9007199254740993,\"a\" : [ 1.0,{ },\"\\u00e9\" ],\"_meta\":{\"x\":1},\"in\":{\"icons\":[]},\"icons\":[{}]}",
    );
    let label: Label = "tool:prompt:x".parse().unwrap();
    let text = definitions_file(Some("a\n\"b\""), [(&label, served.root())]);
    let want = r#"{
  "instructions": "a\n\"b\"",
  "definitions": {
    "tool:prompt:x": {
      "b": 9007199254740993,
      "a": [
        1.0,
        {},
        "\u00e9"
      ],
      "in": {
        "icons": []
      }
    }
  }
}
"#;
    assert_eq!(text, want);
    assert_eq!(definitions_file(None, []), "{\n  \"definitions\": {}\n}\n");
    assert_eq!(compact(served.root().get("a").unwrap()), "[1.0,{},\"\\u00e9\"]");
}

proptest! {
    /// What is written reads back as the same definition, whatever was served, and writing that again changes nothing.
    #[test]
    fn what_is_written_reads_back(definition in object(), seed: u64) {
        let served = document(&spell(&Json::from(definition), seed));
        let label: Label = "a".parse().unwrap();
        let text = definitions_file(None, [(&label, served.root())]);
        let whole = document(&text);
        let back = whole.root().get("definitions").unwrap().get("tool:a").unwrap();
        prop_assert_eq!(differences(served.root(), back), [""; 0]);
        prop_assert_eq!(definitions_file(None, [(&label, back)]), text.clone());
        prop_assert!(Definitions::read(text.into_bytes()).is_ok());
    }
}
