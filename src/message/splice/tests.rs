use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::message::testing::{self, document, meaning};

/// What `edit` makes of `text`.
fn edited(text: &str, edit: impl for<'d> FnOnce(&mut Edits<'d>, Value<'d>)) -> Result<String, Conflict> {
    let document = document(text);
    let mut edits = Edits::new(&document);
    edit(&mut edits, document.root());
    edits.apply().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn no_edit_is_the_same_bytes() {
    let text = " { \"a\" : [ 1.0 , 2e0 ] } ";
    let document = document(text);
    let mut edits = Edits::new(&document);
    assert!(edits.is_empty());
    assert_eq!(edits.retain_items(document.root().get("a").unwrap(), |_, _| true), 0);
    assert!(!edits.remove_member(document.root(), "b"));
    assert!(edits.is_empty());
    assert_eq!(edits.apply().unwrap(), text.as_bytes());
}

#[test]
fn items_go_with_the_separator_in_front() {
    let text = "[ 1.0 ,\n  2 ,\t\"\\u0033\" , 4 ]";
    for (keep, want) in [
        (&[1, 2, 3][..], "[ 2 ,\t\"\\u0033\" , 4 ]"),
        (&[0, 2, 3], "[ 1.0 ,\t\"\\u0033\" , 4 ]"),
        (&[0, 3], "[ 1.0 , 4 ]"),
        (&[0, 1, 2], "[ 1.0 ,\n  2 ,\t\"\\u0033\" ]"),
        (&[2], "[ \"\\u0033\" ]"),
        (&[1, 3], "[ 2 , 4 ]"),
        (&[], "[  ]"),
    ] {
        let mut went = 0;
        let got = edited(text, |edits, root| went = edits.retain_items(root, |index, _| keep.contains(&index)));
        assert_eq!(got.unwrap(), want);
        assert_eq!(went, 4 - keep.len());
    }
}

#[test]
fn members_go_with_one_comma() {
    let text = "{ \"a\" : 1 ,\n \"\\u0062\":[2] , \"c\":3 }";
    for (keys, want) in [
        (&["a"][..], "{ \"\\u0062\":[2] , \"c\":3 }"),
        (&["b"], "{ \"a\" : 1 , \"c\":3 }"),
        (&["c"], "{ \"a\" : 1 ,\n \"\\u0062\":[2] }"),
        (&["c", "a"], "{ \"\\u0062\":[2] }"),
        (&["c", "b", "b"], "{ \"a\" : 1 }"),
        (&["b", "a", "c"], "{  }"),
    ] {
        let got = edited(text, |edits, root| keys.iter().for_each(|key| assert!(edits.remove_member(root, key))));
        assert_eq!(got.unwrap(), want);
    }
}

#[test]
fn members_are_set_in_place_or_last() {
    let set = |text: &str, pairs: &[(&str, &str)], gone: &[&str]| {
        edited(text, |edits, root| {
            for (key, json) in pairs {
                edits.set_member(root, key, json.as_bytes());
            }
            for key in gone {
                assert!(edits.remove_member(root, key));
            }
        })
        .unwrap()
    };
    assert_eq!(set(r#"{ "a": 1, "b": 2 }"#, &[("a", "[]")], &[]), r#"{ "a": [], "b": 2 }"#);
    assert_eq!(
        set(r#"{ "\u0061": 1 }"#, &[("a", "2"), ("\"", "3"), ("z", "4")], &[]),
        r#"{ "\u0061": 2,"\"":3,"z":4 }"#
    );
    assert_eq!(set("{ }", &[("a", "1"), ("b", "2")], &[]), r#"{"a":1,"b":2 }"#);
    assert_eq!(set(r#"{ "a": 1, "b": 2 }"#, &[("c", "3"), ("d", "4")], &["b", "a"]), r#"{ "c":3,"d":4 }"#);
    assert_eq!(set(r#"{ "a": 1, "b": 2 }"#, &[("c", "3")], &["b"]), r#"{ "a": 1,"c":3 }"#);
    assert_eq!(set(r#"{ "a": 1, "b": 2 }"#, &[("c", "3"), ("b", "4")], &["a"]), r#"{ "b": 4,"c":3 }"#);
}

#[test]
fn an_item_comes_first() {
    let first = |text: &str, keep: &[usize]| {
        edited(text, |edits, root| {
            edits.insert_first(root, br#"{"n":"new"}"#);
            edits.retain_items(root, |index, _| keep.contains(&index));
        })
        .unwrap()
    };
    assert_eq!(first("[ 1.0 ,\n 2 ]", &[0, 1]), "[{\"n\":\"new\"}, 1.0 ,\n 2 ]");
    assert_eq!(first("[1,2]", &[1]), "[{\"n\":\"new\"},2]");
    assert_eq!(first("[1,2]", &[]), "[{\"n\":\"new\"}]");
    assert_eq!(first("[1 ,2]", &[0]), "[{\"n\":\"new\"},1]");
    assert_eq!(first("[]", &[]), "[{\"n\":\"new\"}]");
    assert_eq!(first("[ ]", &[]), "[{\"n\":\"new\"} ]");
}

#[test]
fn nested_edits_meet() {
    let text = r#"{"r":{"tools":[{"n":1},{"n":2}],"x":0},"y":{}}"#;
    let got = edited(text, |edits, root| {
        edits.set_member(root, "z", b"9");
        edits.set_member(root.get("y").unwrap(), "k", b"{}");
        let result = root.get("r").unwrap();
        edits.retain_items(result.get("tools").unwrap(), |index, item| {
            edits_first(index, item);
            index == 1
        });
        edits.remove_member(result, "x");
        edits.replace(result.get("tools").unwrap().items().nth(1).unwrap().get("n").unwrap(), b"\"two\"");
    });
    assert_eq!(got.unwrap(), r#"{"r":{"tools":[{"n":"two"}]},"y":{"k":{}},"z":9}"#);
}

/// The closure sees each item under its own index.
fn edits_first(index: usize, item: Value<'_>) {
    assert_eq!(item.get("n").unwrap().raw(), (index + 1).to_string());
}

#[test]
fn contradictions_are_refused() {
    let text = r#"{"a":{"b":1},"c":[1]}"#;
    let a = |root: Value<'static>| root.get("a").unwrap();
    let document: &'static Document = Box::leak(Box::new(document(text)));
    let conflict = |edit: &dyn Fn(&mut Edits<'static>, Value<'static>)| {
        let mut edits = Edits::new(document);
        edit(&mut edits, document.root());
        assert!(!edits.is_empty());
        edits.apply().unwrap_err()
    };
    let overlap = |at| Conflict::Overlap { at };
    assert_eq!(conflict(&|e, r| (e.replace(a(r), b"1"), e.replace(a(r), b"1")).0), overlap(5));
    assert_eq!(conflict(&|e, r| (e.replace(a(r).get("b").unwrap(), b"1"), e.replace(a(r), b"1")).0), overlap(10));
    assert_eq!(conflict(&|e, r| (e.set_member(a(r), "n", b"1"), e.remove_member(r, "a")).0), overlap(11));
    assert_eq!(conflict(&|e, r| (e.remove_member(r, "a"), e.set_member(r, "a", b"1")).1), overlap(5));
    assert_eq!(conflict(&|e, r| (e.set_member(r, "z", b"1"), e.set_member(r, "z", b"1")).1), overlap(20));
    assert_eq!(conflict(&|e, r| _ = e.retain_items(a(r), |_, _| true)), Conflict::Kind { at: 5 });
    assert_eq!(conflict(&|e, r| _ = e.remove_member(r.get("c").unwrap(), "a")), Conflict::Kind { at: 17 });
    assert_eq!(conflict(&|e, r| e.set_member(r.get("c").unwrap(), "a", b"1")), Conflict::Kind { at: 17 });
    assert_eq!(conflict(&|e, r| e.insert_first(a(r), b"1")), Conflict::Kind { at: 5 });
    let c = |root: Value<'static>| root.get("c").unwrap();
    assert_eq!(conflict(&|e, r| (e.insert_first(c(r), b"1"), e.insert_first(c(r), b"1")).0), overlap(18));
    assert_eq!(conflict(&|e, r| (e.insert_first(c(r), b"1"), e.remove_member(r, "c")).0), overlap(18));
    assert_eq!(conflict(&|e, r| (e.insert_first(c(r), b"1"), e.replace(c(r), b"1")).0), overlap(18));
    let other: &'static Document = Box::leak(Box::new(testing::document(text)));
    assert_eq!(conflict(&|e, _| e.replace(other.root(), b"1")), Conflict::Foreign);
    assert_eq!(conflict(&|e, _| _ = e.remove_member(other.root(), "a")), Conflict::Foreign);
}

#[test]
fn retaining_twice_keeps_what_both_keep() {
    let got = edited("[0,1,2,3,4,5]", |edits, root| {
        edits.retain_items(root, |index, _| index % 2 == 1);
        edits.retain_items(root, |index, _| index % 3 == 0);
    });
    assert_eq!(got.unwrap(), "[3]");
}

#[test]
fn the_allocation_is_exact() {
    let document = document("[10,20,30]");
    let mut edits = Edits::new(&document);
    edits.retain_items(document.root(), |index, _| index != 1);
    edits.replace(document.root().items().next().unwrap(), b"\"longer than before\"");
    let bytes = edits.apply().unwrap();
    assert_eq!(bytes, br#"["longer than before",30]"#);
    assert_eq!(bytes.capacity(), bytes.len());
}

/// One edit of an arbitrary document: which value, which edit, and choices for it.
type Choice = (prop::sample::Index, u8, prop::sample::Index, u64);

/// Every value of a document, keys left out.
fn all<'d>(value: Value<'d>, into: &mut Vec<Value<'d>>) {
    into.push(value);
    value.items().chain(value.entries().map(|(_, value)| value)).for_each(|child| all(child, into));
}

fn register<'d>(edits: &mut Edits<'d>, root: Value<'d>, (which, what, member, mask): &Choice) {
    let mut values = Vec::new();
    all(root, &mut values);
    let value = *which.get(&values);
    let key = value.entries().nth(member.index(value.len().max(1))).map_or("new", |(key, _)| key.as_str().unwrap());
    match what % 5 {
        0 => edits.replace(value, br#"{"a":[1]}"#),
        1 => _ = edits.remove_member(value, key),
        4 => edits.insert_first(value, b"{\"first\":1}"),
        2 => edits.set_member(value, if mask % 2 == 0 { key } else { "added" }, b"[null]"),
        _ => _ = edits.retain_items(value, |index, _| mask >> (index % 64) & 1 == 1),
    }
}

proptest! {
    #[test]
    fn retaining_is_what_serde_json_does(items in testing::array(), mask: u64, seed: u64) {
        let value = json!({"r": items, "z": 1});
        let text = testing::spell(&value, seed);
        let document = document(&text);
        let array = document.root().get("r").unwrap();
        let mut edits = Edits::new(&document);
        let keep = |index: usize| mask >> index & 1 == 1;
        edits.retain_items(array, |index, _| keep(index));
        let result = testing::document(&String::from_utf8(edits.apply().unwrap()).unwrap());
        let wanted: Vec<_> = items.into_iter().enumerate().filter(|(n, _)| keep(*n)).map(|(_, item)| item).collect();
        prop_assert_eq!(meaning(result.root()), json!({"r": wanted, "z": 1}));
        // Items that stay, and everything around the array, are the bytes that came.
        let after = result.root().get("r").unwrap();
        let kept = array.items().enumerate().filter(|(n, _)| keep(*n)).map(|(_, item)| item.raw());
        prop_assert!(kept.eq(after.items().map(|item| item.raw())));
        prop_assert_eq!(&document.text()[..array.span().start], &result.text()[..after.span().start]);
        prop_assert_eq!(&document.text()[array.span().end..], &result.text()[after.span().end..]);
    }

    #[test]
    fn a_first_item_leaves_every_other_byte(items in testing::array(), seed: u64) {
        let text = testing::spell(&json!({"r": items, "z": 1}), seed);
        let document = document(&text);
        let array = document.root().get("r").unwrap();
        let mut edits = Edits::new(&document);
        edits.insert_first(array, b"7");
        let out = String::from_utf8(edits.apply().unwrap()).unwrap();
        let at = array.span().start + 1;
        let new = if array.is_empty() { "7" } else { "7," };
        prop_assert_eq!(out, format!("{}{new}{}", &text[..at], &text[at..]));
    }

    #[test]
    fn members_are_edited_as_serde_json_does(
        members in testing::object(),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        set in prop::collection::btree_map("[a-g]{1,2}", testing::value(), 0..6),
        set_first: bool,
        seed: u64,
    ) {
        let mut wanted: Map<_, _> = members.clone();
        let keys: Vec<String> = members.keys().filter(|key| !set.contains_key(*key)).cloned().collect();
        let removed: Vec<&String> = removed.iter().filter(|_| !keys.is_empty()).map(|n| n.get(&keys)).collect();
        let document = document(&testing::spell(&members.into(), seed));
        let mut edits = Edits::new(&document);
        for step in [set_first, !set_first] {
            if step {
                for (key, value) in &set {
                    edits.set_member(document.root(), key, testing::spell(value, seed).as_bytes());
                }
            } else {
                for key in &removed {
                    assert!(edits.remove_member(document.root(), key));
                }
            }
        }
        wanted.retain(|key, _| !removed.contains(&key));
        wanted.extend(set);
        let result = testing::document(&String::from_utf8(edits.apply().unwrap()).unwrap());
        prop_assert_eq!(meaning(result.root()), serde_json::Value::from(wanted));
    }

    #[test]
    fn any_edits_give_a_document_or_a_conflict_in_any_order(
        value in testing::value(),
        choices in prop::collection::vec(any::<Choice>(), 0..5),
        seed: u64,
    ) {
        let document = document(&testing::spell(&value, seed));
        let run = |choices: &mut dyn Iterator<Item = &Choice>| {
            let mut edits = Edits::new(&document);
            choices.for_each(|choice| register(&mut edits, document.root(), choice));
            edits.apply().map(|bytes| meaning(testing::document(&String::from_utf8(bytes).unwrap()).root()))
        };
        let (forth, back) = (run(&mut choices.iter()), run(&mut choices.iter().rev()));
        prop_assert_eq!(forth.is_ok(), back.is_ok());
        if let (Ok(forth), Ok(back)) = (forth, back) {
            prop_assert_eq!(forth, back);
        }
    }
}
