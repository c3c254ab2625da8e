use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::message::testing::{self, document};

fn canonical_text(text: &str) -> String {
    let mut out = Vec::new();
    canonical(document(text).root(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn written(text: &str) -> String {
    let mut out = Vec::new();
    string(&mut out, text);
    String::from_utf8(out).unwrap()
}

#[test]
fn strings_have_the_fewest_escapes() {
    assert_eq!(written(""), r#""""#);
    assert_eq!(written("a/b é \u{1F600} \u{7f} \u{2028}"), "\"a/b é \u{1F600} \u{7f} \u{2028}\"");
    assert_eq!(written("\"\\\u{8}\t\n\u{c}\r\0\u{1f}\u{b}"), r#""\"\\\b\t\n\f\r\u0000\u001f\u000b""#);
}

#[test]
fn canonical_form_is_fixed() {
    for (text, want) in [
        (" null ", "null"),
        ("[ ]", "[]"),
        ("{ }", "{}"),
        (
            r#"{"b":1,"a":[true,{"z":100,"\u0061":"\u0062\/"}],"B":-0.0}"#,
            r#"{"B":0,"a":[true,{"a":"b/","z":1e2}],"b":1}"#,
        ),
        (
            "{\"\u{10000}\":1,\"\u{ffff}\":2,\"é\":3,\"e\":4,\"\":5}",
            "{\"\":5,\"e\":4,\"é\":3,\"\u{ffff}\":2,\"\u{10000}\":1}",
        ),
        (r#"[[],[[1.50]],{},{"a":{}}]"#, r#"[[],[[15e-1]],{},{"a":{}}]"#),
        (
            r#"{"a":{"y":1,"x":2},"c":{"q":3,"p":{"n":1,"m":2}},"b":0}"#,
            r#"{"a":{"x":2,"y":1},"b":0,"c":{"p":{"m":2,"n":1},"q":3}}"#,
        ),
    ] {
        assert_eq!(canonical_text(text), want);
    }
}

#[test]
fn top_level_members_are_left_out() {
    let text =
        document(r#"{"_meta":{"a":1e99999999999999999999},"name":"x","\u0069cons":[1],"sub":{"_meta":1,"icons":2}}"#);
    let mut out = b"> ".to_vec();
    canonical_without(text.root(), &["_meta", "icons"], &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"> {"name":"x","sub":{"_meta":1,"icons":2}}"#);
    let mut out = Vec::new();
    canonical_without(document(r#"["_meta"]"#).root(), &["_meta"], &mut out).unwrap();
    assert_eq!(out, br#"["_meta"]"#);
}

#[test]
fn an_unrepresentable_number_is_named_and_nothing_written() {
    let mut out = b"before".to_vec();
    let fault = canonical(document(r#"{"b":1,"a":[1,1e9999999999999999999]}"#).root(), &mut out).unwrap_err();
    assert_eq!(fault, Unrepresentable { at: 14 });
    assert_eq!(out, b"before");
}

#[test]
fn depth_costs_no_stack() {
    let text = format!("{}{}", r#"[{"a":"#.repeat(40_000), "0".to_owned() + &"}]".repeat(40_000));
    assert_eq!(canonical_text(&text), text);
}

proptest! {
    #[test]
    fn strings_read_back_and_are_serde_jsons(text: String) {
        let json = written(&text);
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text.clone());
        prop_assert_eq!(serde_json::to_string(&text).unwrap(), json);
    }

    #[test]
    fn every_spelling_of_a_value_has_one_form(value in testing::value(), one: u64, other: u64) {
        let form = canonical_text(&testing::spell(&value, one));
        prop_assert_eq!(&form, &canonical_text(&testing::spell(&value, other)));
        prop_assert_eq!(&form, &canonical_text(&form));
        prop_assert_eq!(testing::meaning(document(&form).root()), value);
    }

    #[test]
    fn different_values_have_different_forms(a in testing::value(), b in testing::value()) {
        let form = |value: &serde_json::Value| canonical_text(&value.to_string());
        prop_assert_eq!(form(&a) == form(&b), a == b);
    }
}

#[test]
fn kinds_do_not_run_together() {
    let forms: Vec<_> = [json!(1), json!("1"), json!(true), json!("true"), json!(null), json!([1]), json!({"1": null})]
        .iter()
        .map(|value| canonical_text(&value.to_string()))
        .collect();
    let mut distinct = forms.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), forms.len());
}
