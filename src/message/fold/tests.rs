use proptest::prelude::*;

use super::*;

#[test]
fn variants_of_known_keys() {
    for (key, known) in [
        ("Method", "method"),
        ("PARAMS", "params"),
        ("param\u{17f}", "params"),
        ("to\u{212a}en", "token"),
        ("de\u{fb01}nition", "definition"),
        ("DE\u{fb01}NITION", "definition"),
        ("con\u{fb06}ant", "constant"),
        ("stra\u{df}e", "strasse"),
        ("straSSe", "stra\u{df}e"),
        ("\u{3a3}", "\u{3c2}"),
        ("\u{131}d", "id"),
        ("\u{130}d", "id"),
        ("UR\u{131}", "uri"),
    ] {
        assert!(same_but_case(key, known), "{key} {known}");
        assert!(same_but_case(known, key), "{known} {key}");
        assert_eq!(case_variant_of(key, &["other", known, "id"]), Some(known));
    }
}

#[test]
fn the_key_itself_and_other_keys_are_no_variants() {
    for (key, known) in [
        ("method", "method"),
        ("stra\u{df}e", "stra\u{df}e"),
        ("methods", "method"),
        ("metho", "method"),
        ("m\u{e9}thod", "method"),
        ("", "id"),
        ("", ""),
        ("i\u{307}d", "id"),
        ("id\u{200d}", "id"),
        ("_meta", "\u{ff3f}meta"),
    ] {
        assert!(!same_but_case(key, known), "{key} {known}");
        assert_eq!(case_variant_of(key, &[known]), None);
    }
}

#[test]
fn a_known_key_is_no_variant_of_another() {
    assert_eq!(case_variant_of("ID", &["id", "ID"]), None);
    assert_eq!(case_variant_of("Id", &["id", "ID"]), Some("id"));
}

proptest! {
    #[test]
    fn it_is_case_folding_of_both(a in "[a-zA-Zſßﬁ\u{212a}Σς]{0,4}", b in "[a-zA-Zſßﬁ\u{212a}Σς]{0,4}") {
        let equal = caseless::default_case_fold_str(&a) == caseless::default_case_fold_str(&b);
        prop_assert_eq!(same_but_case(&a, &b), a != b && equal);
    }

    #[test]
    fn every_case_of_a_key_is_found(key in "[a-z_]{1,12}", upper in "[A-Z]") {
        let variant = format!("{key}{upper}");
        let known = variant.to_lowercase();
        prop_assert!(same_but_case(&variant, &known));
        prop_assert_eq!(same_but_case(&key.to_uppercase(), &key), key.contains(|c: char| c != '_'));
    }
}
