use std::collections::BTreeMap;

use super::{Approved, Change, Changes, Difference, MOST, Side};
use crate::message::testing::document;
use crate::policy::{Kind, Label};
use crate::record::{Definitions, Listed, Listing};

fn label(text: &str) -> Label {
    text.parse().unwrap()
}

fn approved(prices: &[(&str, Option<&str>)], definitions: &str) -> Approved {
    let prices: BTreeMap<_, _> = prices.iter().map(|(name, price)| (label(name), price.map(str::to_owned))).collect();
    let text = format!(r#"{{"instructions": "a", "definitions": {definitions}}}"#);
    Approved::of(prices, &Definitions::read(text.into_bytes()).unwrap()).unwrap()
}

fn offered(entries: &[(&str, &str)]) -> Listing {
    let entries = entries.iter().map(|(name, text)| Listed { label: label(name), document: document(text) }).collect();
    Listing { instructions: Some("a".to_owned()), kinds: Kind::ALL.to_vec(), entries }
}

fn texts(labels: &[Label]) -> Vec<String> {
    labels.iter().map(ToString::to_string).collect()
}

#[test]
fn each_kind_of_difference_has_its_place() {
    let approved = approved(
        &[("same", Some("p")), ("todo", None), ("gone", Some("p")), ("lost", Some("p")), ("other", Some("p"))],
        r#"{"same": {"n": 1.0}, "todo": {}, "gone": {}, "other": {"d": "x"}, "unpriced": {"v": 1}}"#,
    );
    let listing = offered(&[
        ("same", r#"{"n":1,"_meta":{}}"#),
        ("todo", "{}"),
        ("new", "{}"),
        ("other", r#"{"d":"y"}"#),
        ("unpriced", r#"{"v":1}"#),
        ("lost", "{}"),
    ]);
    let changes = Changes::between(&approved, &listing);
    assert_eq!(texts(&changes.never_priced), ["tool:new", "tool:todo"]);
    assert_eq!(texts(&changes.no_longer_offered), ["tool:gone"]);
    assert_eq!(texts(&changes.without_record), ["tool:lost"]);
    let [Change { label, fields }] = &changes.changed[..] else { panic!("{changes:?}") };
    assert_eq!((label.to_string().as_str(), fields[0].name.as_str()), ("tool:other", "d"));
    let side = |text: &str| Some(Side::Text(text.to_owned()));
    assert_eq!(fields[0].differences, [Difference { pointer: String::new(), old: side("x"), new: side("y") }]);
    assert_eq!((changes.instructions.clone(), changes.priced, changes.is_empty()), (None, 4, false));
}

#[test]
fn what_is_as_approved_is_no_change() {
    let approved = approved(&[("a", Some("p"))], r#"{"tool:a": {}, "left_unpriced": {}}"#);
    let mut listing = offered(&[("a", "{}"), ("left_unpriced", "{}")]);
    assert!(Changes::between(&approved, &listing).is_empty());
    listing.instructions = None;
    let changes = Changes::between(&approved, &listing);
    let old = Some(Side::Text("a".to_owned()));
    assert_eq!(changes.instructions, Some(Difference { pointer: String::new(), old, new: None }));
    assert!(!changes.is_empty());
}

#[test]
fn the_innermost_values_are_told() {
    let approved =
        approved(&[("a", Some("p"))], r#"{"a": {"s": {"p": {"x/y": {"d": "1"}}, "r": ["a"], "n": 1, "o": null}}}"#);
    let listing = offered(&[("a", r#"{"s":{"p":{"x/y":{"d":"2"}},"r":["a", "b"],"n":1.50,"q":{"k" : [ ]}}}"#)]);
    let changes = Changes::between(&approved, &listing);
    let told: Vec<String> = changes.changed[0].fields[0]
        .differences
        .iter()
        .map(|difference| format!("{} {:?} {:?}", difference.pointer, difference.old, difference.new))
        .collect();
    assert_eq!(
        told,
        [
            r#"/p/x~1y/d Some(Text("1")) Some(Text("2"))"#,
            r#"/r Some(Json("[\"a\"]")) Some(Json("[\"a\",\"b\"]"))"#,
            r#"/n Some(Json("1")) Some(Json("1.50"))"#,
            r#"/o Some(Json("null")) None"#,
            r#"/q None Some(Json("{\"k\":[]}"))"#,
        ]
    );
}

#[test]
fn a_flood_of_differences_is_counted() {
    let many = |value: usize| {
        let members: Vec<String> = (0..100).map(|n| format!("\"k{n}\": {value}")).collect();
        format!("{{\"s\": {{{}}}}}", members.join(", "))
    };
    let approved = approved(&[("a", Some("p"))], &format!("{{\"a\": {}}}", many(1)));
    let changes = Changes::between(&approved, &offered(&[("a", &many(2))]));
    let field = &changes.changed[0].fields[0];
    assert_eq!((field.differences.len(), field.more), (MOST, 100 - MOST));
}
