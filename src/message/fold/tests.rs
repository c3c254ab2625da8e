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
        if known.is_ascii() {
            let keys: &[&str] = vec!["other", known, "id"].leak();
            assert_eq!(Known::new(keys).case_variant(key), Some(known));
        }
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
        if known.is_ascii() {
            assert_eq!(Known::new(vec![known].leak()).case_variant(key), None);
        }
    }
}

#[test]
fn a_known_key_is_no_variant_of_another() {
    const BOTH: Known = Known::new(&["id", "ID"]);
    assert_eq!(BOTH.case_variant("ID"), None);
    assert_eq!(BOTH.case_variant("Id"), Some("id"));
}

/// The short lists are the whole of Unicode's.
#[test]
fn no_other_letter_becomes_ascii() {
    let all_ascii = |text: String| text.is_ascii().then(|| text.to_ascii_lowercase());
    for letter in ('\u{80}'..=char::MAX).filter(|letter| !letter.is_ascii()) {
        let folded = std::iter::once(letter).default_case_fold().collect::<String>();
        assert_eq!(folding(letter).map(str::to_owned), all_ascii(folded), "{letter:?}");
        assert_eq!(capitals_folding(letter).map(str::to_owned), all_ascii(capital(letter).collect()), "{letter:?}");
    }
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

    /// The quick way and the plain one agree.
    #[test]
    fn known_keys_are_found_as_one_by_one(key in "[a-dA-DiIsSkKſßﬁ\u{212a}ıİé]{0,4}") {
        const KEYS: &[&str] = &["a", "b", "ab", "fi", "s", "ss", "K", "id"];
        let plain = KEYS.iter().copied().find(|known| same_but_case(&key, known));
        let plain = plain.filter(|_| !KEYS.contains(&key.as_str()));
        prop_assert_eq!(Known::new(KEYS).case_variant(&key), plain);
    }
}
