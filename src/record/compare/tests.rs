use proptest::prelude::*;
use serde_json::Value as Json;

use super::{differ, differences, first_differences, same};
use crate::message::testing::{document, object, spell, value};
use crate::record::Digest;

fn told(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (document(old), document(new));
    let told = differences(old.root(), new.root());
    assert_eq!(differ(old.root(), new.root()), !told.is_empty());
    told
}

#[test]
fn spelling_is_no_difference() {
    let old = r#"{"a":{"x":1,"y":[1,2]},"b":"é","_meta":{"v":1},"icons":[]}"#;
    for new in [
        r#"{"b":"\u00e9","a":{"y":[1.0,2e0],"x":10e-1}}"#,
        r#"{"icons":[{"src":"x"}],"_meta":null,"a":{"x":1,"y":[1,2]},"b":"é"}"#,
    ] {
        assert_eq!(told(old, new), [""; 0], "{new}");
    }
}

#[test]
fn every_other_field_counts_on_both_sides() {
    let old = r#"{"description":"a","inputSchema":{"maximum":1,"items":[1,2]},"gone":null}"#;
    for (new, fields) in [
        (r#"{"description":"b","inputSchema":{"maximum":1,"items":[1,2]},"gone":null}"#, &["description"][..]),
        (r#"{"description":"a","inputSchema":{"maximum":true,"items":[1,2]},"gone":null}"#, &["inputSchema"]),
        (r#"{"description":"a","inputSchema":{"maximum":1,"items":[2,1]},"gone":null}"#, &["inputSchema"]),
        (r#"{"description":"a","inputSchema":{"maximum":1,"items":[1,2],"_meta":1},"gone":null}"#, &["inputSchema"]),
        (r#"{"description":"a","inputSchema":{"maximum":1,"items":[1,2]}}"#, &["gone"]),
        (
            r#"{"outputSchema":null,"description":"a","inputSchema":{"maximum":1,"items":[1,2]},"gone":0,"__proto__":1}"#,
            &["__proto__", "gone", "outputSchema"],
        ),
        ("[]", &["definition"]),
    ] {
        assert_eq!(told(old, new), fields, "{new}");
    }
}

#[test]
fn the_first_of_many_names_are_the_first_in_order() {
    let members = (0..1000).rev().map(|n| format!("\"{n:03}\": 0")).collect::<Vec<_>>().join(",");
    let (none, many) = (document("{}"), document(&format!("{{{members}}}")));
    let names: Vec<String> = (0..1000).map(|n| format!("{n:03}")).collect();
    for (old, new) in [(&none, &many), (&many, &none)] {
        assert_eq!(differences(old.root(), new.root()), names);
        for most in [1, 256, 999, 1000, 1001] {
            assert_eq!(first_differences(old.root(), new.root(), most), names[..most.min(1000)]);
        }
    }
}

#[test]
fn numbers_compare_by_value_and_never_round() {
    for (one, other, equal) in [
        ("9007199254740993", "9007199254740992", false),
        ("9007199254740993", "90071992547409930e-1", true),
        ("-0", "0.0", true),
        ("1e400", "1e401", false),
        ("1e99999999999999999999999999999999", "1e99999999999999999999999999999999", true),
        ("1", "\"1\"", false),
        ("1", "true", false),
    ] {
        assert_eq!(same(document(one).root(), document(other).root()), equal, "{one} {other}");
    }
}

proptest! {
    /// The canonical form is the slow oracle: equal digests and nothing else is sameness.
    #[test]
    fn no_difference_is_an_equal_digest(one in object(), other in object(), seed: u64) {
        let (one, other) = (Json::from(one), Json::from(other));
        for (a, b) in [(&one, &one), (&one, &other)] {
            let (a, b) = (document(&spell(a, seed)), document(&spell(b, seed.rotate_left(17))));
            let digest = |document: &crate::message::json::Document| Digest::of(document.root()).expect("canonical").0;
            prop_assert_eq!(differences(a.root(), b.root()).is_empty(), digest(&a) == digest(&b));
            prop_assert_eq!(differ(a.root(), b.root()), digest(&a) != digest(&b));
        }
    }

    #[test]
    fn sameness_is_equality_of_values(one in value(), other in value(), seed: u64) {
        prop_assert!(same(document(&spell(&one, seed)).root(), document(&one.to_string()).root()));
        prop_assert_eq!(same(document(&one.to_string()).root(), document(&other.to_string()).root()), one == other);
    }
}
