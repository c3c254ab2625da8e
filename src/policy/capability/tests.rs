use proptest::prelude::*;

use super::{EmptyName, Kind, Label};

fn label(text: &str) -> Label {
    text.parse().expect("a label")
}

#[test]
fn a_bare_name_is_a_tool() {
    assert_eq!(label("search_cases"), label("tool:search_cases"));
    assert_eq!(label("search_cases").to_string(), "tool:search_cases");
    assert_eq!(label("ns:search"), Label::new(Kind::Tool, "ns:search"), "an unknown word is part of the name");
    assert_eq!(label("Tool:x"), Label::new(Kind::Tool, "Tool:x"), "kinds are lower case");
    assert_eq!(label("tools:x"), Label::new(Kind::Tool, "tools:x"));
}

#[test]
fn a_known_word_types_the_name_once() {
    assert_eq!(label("prompt:x"), Label::new(Kind::Prompt, "x"));
    assert_eq!(label("resource:case"), Label::new(Kind::Resource, "case"));
    assert_eq!(label("tool:prompt:x"), Label::new(Kind::Tool, "prompt:x"));
    assert_eq!(label("prompt:prompt:x"), Label::new(Kind::Prompt, "prompt:x"));
    assert_ne!(label("tool:prompt:x"), label("prompt:x"));
}

#[test]
fn a_label_without_a_name_is_none() {
    for text in ["", "tool:", "prompt:", "resource:"] {
        assert_eq!(text.parse::<Label>(), Err(EmptyName), "{text:?}");
    }
}

proptest! {
    #[test]
    fn the_canonical_text_means_the_same_label(kind in prop::sample::select(Kind::ALL.to_vec()), name in ".{1,12}|(tool|prompt|resource):.{0,5}") {
        let label = Label::new(kind, &name);
        prop_assert_eq!(label.to_string().parse::<Label>(), Ok(label));
    }
}
