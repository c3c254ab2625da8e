//! The automaton against the slow and obvious matcher, over templates and URIs from a small world, where every way to be
//! ambiguous comes up.

use proptest::prelude::*;

use super::oracle;
use crate::policy::template::{Template, TemplateSet};

/// With every modifier.
const ALL: &[&str] = &["", "", "", "*", ":1", ":2"];

fn templates(modifiers: &'static [&'static str]) -> impl Strategy<Value = Template> {
    let variables = prop::collection::btree_map("[abc]", prop::sample::select(modifiers), 1..4)
        .prop_map(|variables| {
            variables.into_iter().map(|(name, modifier)| format!("{name}{modifier}")).collect::<Vec<_>>()
        })
        .prop_shuffle();
    let operator = prop::sample::select(vec!["", "+", "#", ".", "/", ";", "?", "&"]);
    let expression =
        (operator, variables).prop_map(|(operator, variables)| format!("{{{operator}{}}}", variables.join(",")));
    let literal = prop::sample::select(vec!["a", "b", "/", ".", ",", "?", "&", "=", ";", "#", "%2F", "a=", "?a=b"])
        .prop_map(str::to_owned);
    prop::collection::vec(prop_oneof![2 => literal, 3 => expression], 1..5)
        .prop_map(|pieces| Template::parse(&pieces.concat()).expect("made well"))
}

fn uris() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "c", "a", "/", ".", ",", "?", "&", "=", ";", "#", "%2F", "%", "a=b", "?a=b", "&b=a", "&c=a", ";a",
        "é", "{a}",
    ]);
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// An expansion of `template`, its values taken from `values`, some parameters left out by `mask`.
fn expansion(template: &Template, values: &[String], mask: u8) -> String {
    oracle::expand(template, &|n| values[n % values.len()].clone(), &|n| mask & (1 << (n % 8)) != 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_slow_matcher_on_any_uri(templates in prop::collection::vec(templates(ALL), 1..6), uri in uris()) {
        let set = TemplateSet::build(&templates).expect("compiles");
        let expected = oracle::covering(&templates, &uri);
        prop_assert_eq!(set.covering(&uri).to_vec(), expected);
    }

    /// Expansions and their neighbours: most of them are covered by something, unlike random text.
    #[test]
    fn agrees_with_the_slow_matcher_near_expansions(
        templates in prop::collection::vec(templates(ALL), 1..6),
        values in prop::collection::vec("[ab=/,.&]{1,3}", 1..4),
        mask in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        extra in uris(),
    ) {
        let set = TemplateSet::build(&templates).expect("compiles");
        let whole = expansion(&templates[0], &values, mask);
        let cut = cut.index(whole.len() + 1);
        for uri in [format!("{whole}{extra}"), format!("{}{extra}{}", &whole[..cut], &whole[cut..]), whole[..cut].to_owned()] {
            let expected = oracle::covering(&templates, &uri);
            prop_assert_eq!(set.covering(&uri).to_vec(), expected, "{}", uri);
        }
    }

    #[test]
    fn every_expansion_is_covered(template in templates(&["", "*"]), values in prop::collection::vec("[ -~é]{1,4}", 1..4), mask in any::<u8>()) {
        let uri = expansion(&template, &values, mask);
        prop_assume!(!uri.contains(['{', '}']));
        let set = TemplateSet::build(std::slice::from_ref(&template)).expect("compiles");
        prop_assert_eq!(set.covering(&uri).to_vec(), vec![0], "{}", uri);
    }

    #[test]
    fn any_text_gets_an_answer(template in any::<String>(), braces in "[{}a,+#./;?&*:1=é]{0,12}", uri in any::<String>()) {
        for text in [template, braces] {
            if let Ok(template) = Template::parse(&text) {
                let set = TemplateSet::build(&[template]).expect("compiles");
                let _ = set.covering(&uri);
                prop_assert_eq!(set.covering(&text).to_vec(), vec![0]);
            }
        }
    }
}
