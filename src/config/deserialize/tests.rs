use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::load;
use crate::config::tree::Node;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outer {
    name: String,
    inner: Inner,
    #[serde(default)]
    list: Vec<Inner>,
    #[serde(default)]
    map: BTreeMap<String, u16>,
    #[serde(default)]
    choice: Option<Choice>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Inner {
    size: u16,
    on: bool,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Plain,
    With(Inner),
}

fn outcome(text: &str) -> (Option<Outer>, Vec<String>) {
    let (root, faults) = Node::parse(text);
    assert!(faults.is_empty(), "{faults:?}");
    let mut root = root.expect("a document");
    let (value, faults) = load(&mut root);
    let told = faults
        .iter()
        .map(|fault| format!("{}:{} {}: {}", fault.place.line, fault.place.column, fault.path, fault.message));
    (value, told.collect())
}

fn faults(text: &str) -> Vec<String> {
    outcome(text).1
}

#[test]
fn a_good_value_loads() {
    let text = "name: off\ninner: {size: 1, on: true, note: 12}\nmap: {a: 3}\nchoice: {with: {size: 2, on: false}}\n";
    let (value, faults) = outcome(text);
    assert!(faults.is_empty(), "{faults:?}");
    let value = value.expect("loads");
    assert_eq!(value.name, "off", "YAML 1.2: off is a string");
    assert_eq!(value.inner.note.as_deref(), Some("12"));
    assert_eq!(value.choice, Some(Choice::With(Inner { size: 2, on: false, note: None })));
}

#[test]
fn every_fault_is_told_with_its_place() {
    let text = "name: x\ninner:\n  size: many\n  on: yes\n  zzz: 1\nmap: {a: -1, b: 2}\nlist:\n- {size: 70000, on: true}\n- 7\n";
    let mut told = faults(text);
    // They come in the order in which serde meets them; the report sorts by line later.
    told.sort();
    assert_eq!(
        told,
        [
            "3:9 inner.size: expected a whole number that is not negative, found `many`",
            "4:7 inner.on: expected a boolean, found `yes`",
            "5:3 inner.zzz: expected one of `size`, `on`, `note`, found the unknown key `zzz`; remove it",
            "6:10 map.a: expected a whole number that is not negative, found `-1`",
            "8:10 list[0].size: expected a whole number that is not negative, found `70000`",
            "9:3 list[1]: expected a mapping, found `7`",
        ]
    );
}

#[test]
fn all_missing_keys_of_a_mapping_are_told_at_once() {
    assert_eq!(
        faults("inner: {}\n"),
        [
            "1:1 inner: expected the key `size`, which is missing here; add it",
            "1:1 inner: expected the key `on`, which is missing here; add it",
            "1:1 : expected the key `name`, which is missing here; add it",
        ]
    );
}

#[test]
fn a_key_whose_value_is_wrong_is_not_missing_too() {
    assert_eq!(faults("name: [x]\ninner: {size: 1, on: true}\n"), ["1:7 name: expected a string, found a list"]);
}

#[test]
fn a_slip_of_the_pen_is_recognised() {
    let told = faults("name: x\ninner: {size: 1, on: true}\nchioce: plain\n");
    assert_eq!(told, ["3:1 chioce: expected a known key, found `chioce`; did you mean `choice`?"]);
    let told = faults("name: x\ninner: {size: 1, on: true}\nchoice: plan\n");
    assert_eq!(told, ["3:9 choice: expected one of `plain`, `with`, found `plan`; did you mean `plain`?"]);
}

#[test]
fn the_forms_of_a_choice_are_checked() {
    let choice = |text: &str| faults(&format!("name: x\ninner: {{size: 1, on: true}}\nchoice: {text}\n"));
    assert_eq!(choice("{plain: 1}"), ["3:17 choice.plain: expected `plain` alone, found a value behind it"]);
    assert_eq!(choice("with"), ["3:9 choice: expected `with: …`, found `with` alone"]);
    assert_eq!(choice("{a: 1, b: 2}"), ["3:9 choice: expected exactly one key here, found 2"]);
    assert_eq!(
        choice("{wiht: {}}"),
        ["3:10 choice.wiht: expected one of `plain`, `with`, found `wiht`; did you mean `with`?"]
    );
    assert_eq!(choice("[]"), ["3:9 choice: expected one of `plain`, `with`, found a list"]);
    assert!(choice("").is_empty(), "nothing is the default");
}

#[test]
fn a_number_that_cannot_be_held_exactly_is_refused() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Any {
        value: serde_json::Value,
    }
    let told = |text: &str| {
        let mut root = Node::parse(&format!("value: {text}")).0.expect("a document");
        let (value, faults) = load::<Any>(&mut root);
        value.map_or_else(|| faults[0].message.clone(), |any| any.value.to_string())
    };
    assert_eq!(told("18446744073709551615"), "18446744073709551615");
    assert_eq!(told("-0.25"), "-0.25");
    assert_eq!(told("1e3"), "1000.0");
    assert_eq!(told("1.2.3"), "\"1.2.3\"");
    assert_eq!(told("2026-07-28"), "\"2026-07-28\"");
    assert_eq!(told("'7'"), "\"7\"");
    assert_eq!(told("~"), "null");
    for inexact in ["18446744073709551616", "1.00000000000000000001", "1e400"] {
        assert!(told(inexact).contains("can be held exactly"), "{inexact}: {}", told(inexact));
    }
}

#[test]
fn an_empty_document_lacks_everything() {
    assert_eq!(faults(""), ["1:1 : expected a mapping, found nothing"]);
}
