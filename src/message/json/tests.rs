use std::collections::HashSet;

use proptest::prelude::*;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::*;
use crate::message::testing;

const LIMITS: Limits = Limits { depth: 8, nodes: 1000 };

fn read(text: &str) -> Result<Document, Fault> {
    Document::read(text.as_bytes().to_vec(), LIMITS)
}

#[test]
fn values_keep_their_bytes() {
    let text = r#" {"a":[1, 2.50 ,-0e1],"\u0062":"x\n\ud83d\ude00","c":{},"d":true,"e":null} "#;
    let document = read(text).unwrap();
    let root = document.root();
    assert_eq!((root.kind(), root.len(), root.span()), (Kind::Object, 5, 1..text.len() - 1));
    let numbers: Vec<_> = root.get("a").unwrap().items().map(|item| item.as_number()).collect();
    assert_eq!(numbers, [Some("1"), Some("2.50"), Some("-0e1")]);
    assert_eq!(root.get("b").unwrap().as_str(), Some("x\n\u{1F600}"));
    assert_eq!(root.get("b").unwrap().raw(), r#""x\n\ud83d\ude00""#);
    assert_eq!(root.get("d").unwrap().as_bool(), Some(true));
    assert!(root.get("e").unwrap().is_null());
    assert!(root.get("c").unwrap().is_empty());
    assert!(root.get("f").is_none());
    assert_eq!(document.text(), text);
    assert_eq!(document.into_bytes(), text.as_bytes());
}

#[test]
fn a_value_answers_only_for_its_kind() {
    let document = read(r#"[null,true,0,"a",[1],{"a":1}]"#).unwrap();
    let kinds: Vec<_> = document.root().items().map(|item| item.kind()).collect();
    assert_eq!(kinds, [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object]);
    for item in document.root().items() {
        let kind = item.kind();
        assert_eq!(item.is_null(), kind == Kind::Null);
        assert_eq!(item.as_bool().is_some(), kind == Kind::Bool);
        assert_eq!(item.as_number().is_some(), kind == Kind::Number);
        assert_eq!(item.as_str().is_some(), kind == Kind::String);
        assert_eq!(item.items().count(), usize::from(kind == Kind::Array));
        assert_eq!(item.entries().count(), usize::from(kind == Kind::Object));
        assert_eq!(item.get("a").is_some(), kind == Kind::Object);
        assert_eq!(item.len(), usize::from(matches!(kind, Kind::Array | Kind::Object)));
    }
}

#[test]
fn paths_lead_through_objects() {
    let document = read(r#"{"a":{"\u0062":{"c":7}},"d":[{"e":1}]}"#).unwrap();
    let path = |keys: &[&str]| document.root().path(keys).map(|value| value.raw());
    assert_eq!(path(&["a", "b", "c"]), Some("7"));
    assert_eq!(path(&["d", "e"]), None);
    assert_eq!(path(&["a", "c"]), None);
    assert_eq!(path(&[]), Some(document.text()));
}

#[test]
fn escapes_are_decoded() {
    let document = read(r#"["\"\\\/\b\f\n\r\t\u0000\u00E9\uD834\udd1e\uFFFF","",  "plain","\u0041"]"#).unwrap();
    let strings: Vec<_> = document.root().items().map(|item| item.as_str().unwrap()).collect();
    assert_eq!(strings, ["\"\\/\u{8}\u{c}\n\r\t\0é\u{1D11E}\u{FFFF}", "", "plain", "A"]);
}

#[test]
fn faults_are_told_apart_and_located() {
    for (text, kind, at) in [
        ("", FaultKind::Incomplete, 0),
        (" ", FaultKind::Incomplete, 1),
        ("[1,", FaultKind::Incomplete, 3),
        ("{\"a\"", FaultKind::Incomplete, 4),
        ("{\"a\":", FaultKind::Incomplete, 5),
        ("[tru", FaultKind::Incomplete, 1),
        ("[-", FaultKind::Incomplete, 2),
        ("[1.", FaultKind::Incomplete, 3),
        ("[1e+", FaultKind::Incomplete, 4),
        ("[\"abc", FaultKind::Incomplete, 5),
        ("[\"\\", FaultKind::Incomplete, 2),
        ("[\"\\u00", FaultKind::Incomplete, 6),
        ("[1,]", FaultKind::Syntax, 3),
        ("[,1]", FaultKind::Syntax, 1),
        ("{,}", FaultKind::Syntax, 1),
        ("{\"a\":1,}", FaultKind::Syntax, 7),
        ("{a:1}", FaultKind::Syntax, 1),
        ("{1:1}", FaultKind::Syntax, 1),
        ("{\"a\" 1}", FaultKind::Syntax, 5),
        ("[1 2]", FaultKind::Syntax, 3),
        ("[}", FaultKind::Syntax, 1),
        ("{]", FaultKind::Syntax, 1),
        ("[1}", FaultKind::Syntax, 2),
        ("[01]", FaultKind::Syntax, 2),
        ("[+1]", FaultKind::Syntax, 1),
        ("[.5]", FaultKind::Syntax, 1),
        ("[NaN]", FaultKind::Syntax, 1),
        ("[True]", FaultKind::Syntax, 1),
        ("[trux]", FaultKind::Syntax, 1),
        ("['a']", FaultKind::Syntax, 1),
        ("[/**/]", FaultKind::Syntax, 1),
        ("\u{feff}{}", FaultKind::Syntax, 0),
        ("\u{a0}{}", FaultKind::Syntax, 0),
        ("[1\u{c}]", FaultKind::Syntax, 2),
        ("[1.]", FaultKind::Number, 3),
        ("[-a]", FaultKind::Number, 2),
        ("[1e]", FaultKind::Number, 3),
        ("[1.e1]", FaultKind::Number, 3),
        ("[\"\t\"]", FaultKind::Control, 2),
        ("[\"\\n\u{0}\"]", FaultKind::Control, 4),
        ("[\"123456789\n\"]", FaultKind::Control, 11),
        ("[\"\\a\"]", FaultKind::Escape, 2),
        ("[\"\\u00g0\"]", FaultKind::Escape, 6),
        ("[\"\\U0041\"]", FaultKind::Escape, 2),
        ("[\"\\u+041\"]", FaultKind::Escape, 4),
        ("[\"\\ud800\"]", FaultKind::Surrogate, 2),
        ("[\"a\\udc00\"]", FaultKind::Surrogate, 3),
        ("[\"\\ud800\\u0041\"]", FaultKind::Surrogate, 2),
        ("[\"\\ud800\\ud800\"]", FaultKind::Surrogate, 2),
        ("[\"\\ud800\\n\"]", FaultKind::Surrogate, 2),
        ("{} {}", FaultKind::Trailing, 3),
        ("1 1", FaultKind::Trailing, 2),
        ("{}\0", FaultKind::Trailing, 2),
        ("[[[[[[[[[]]]]]]]]]", FaultKind::Depth, 8),
        ("{\"a\":1,\"\\u0061\":2}", FaultKind::DuplicateKey, 7),
        ("[{\"b\":{\"\":1,\"\":2}}]", FaultKind::DuplicateKey, 12),
        ("{\"é\":1,\"\\u00e9\":2}", FaultKind::DuplicateKey, 8),
    ] {
        assert_eq!(read(text).expect_err(text), Fault { kind, at }, "{text:?}");
    }
    for (bytes, at) in [(&b"[\"\xFF\"]"[..], 2), (b"[\"\xC3", 2), (b"\xC0\x80", 0), (b"[\"\xED\xA0\x80\"]", 2)] {
        assert_eq!(Document::read(bytes.to_vec(), LIMITS).unwrap_err(), Fault { kind: FaultKind::Utf8, at });
    }
}

#[test]
fn keys_that_only_look_alike_are_different() {
    for text in [
        r#"{"a":1,"A":2}"#,
        r#"{"a":1,"b":{"a":1}}"#,
        r#"[{"a":1},{"a":1}]"#,
        r#"{"a":"a","b":"a"}"#,
        "{\"é\":1,\"e\u{301}\":2}",
        r#"{"\\u0061":1,"a":2}"#,
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
}

#[test]
fn repeated_keys_are_found_in_objects_of_every_size() {
    for size in [2_usize, 3, 11, 12, 13, 14, 50, 400] {
        let member = |n: usize| format!("\"key{n}\":{{\"key0\":[]}}");
        let members: Vec<_> = (0..size).map(member).collect();
        let text = format!("{{{}}}", members.join(","));
        assert!(Document::read(text.into_bytes(), Limits { depth: 8, nodes: 10_000 }).is_ok());
        for (original, copy) in [(0, size), (size - 1, size), (size / 2, size), (0, 1)] {
            let mut members = members.clone();
            members.insert(copy, member(original).replace('k', "\\u006b"));
            let text = format!("{{{}}}", members.join(","));
            let at = 1 + members[..copy].iter().map(|member| member.len() + 1).sum::<usize>();
            let fault = Document::read(text.into_bytes(), Limits { depth: 8, nodes: 10_000 }).unwrap_err();
            assert_eq!(fault, Fault { kind: FaultKind::DuplicateKey, at }, "{size}: {original} again at {copy}");
        }
    }
}

#[test]
fn limits_are_exact() {
    let with = |text: &str, depth, nodes| Document::read(text.as_bytes().to_vec(), Limits { depth, nodes }).err();
    let text = r#"[{"a":[1,"b"]},null]"#;
    assert_eq!(with(text, 3, 7), None);
    assert_eq!(with(text, 2, 7), Some(Fault { kind: FaultKind::Depth, at: 6 }));
    assert_eq!(with(text, 3, 6), Some(Fault { kind: FaultKind::TooMany, at: 15 }));
    assert_eq!(with("1", 0, 1), None);
    assert_eq!(with("1", 0, 0), Some(Fault { kind: FaultKind::TooMany, at: 0 }));
    assert_eq!(with("[]", 0, 9), Some(Fault { kind: FaultKind::Depth, at: 0 }));
    assert_eq!(with("[[],[],[[]]]", 3, 9), None);
}

#[test]
fn hostile_sizes_cost_no_stack_and_no_squares() {
    let deep = "[".repeat(1 << 20);
    assert_eq!(read(&deep).unwrap_err().kind, FaultKind::Depth);
    let unlimited = Limits { depth: usize::MAX, nodes: usize::MAX };
    assert_eq!(Document::read(deep.into_bytes(), unlimited).unwrap_err().kind, FaultKind::Incomplete);
    let closed = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Document::read(closed.into_bytes(), unlimited).unwrap().root().len(), 1);
    let keys: Vec<_> = (0..50_000).map(|n| format!("\"{n}\":0")).collect();
    let wide = format!("{{{}}}", keys.join(","));
    assert_eq!(Document::read(wide.into_bytes(), unlimited).unwrap().root().len(), 50_000);
    let escapes = format!("\"{}\"", "\\u0041".repeat(100_000));
    let document = Document::read(escapes.into_bytes(), unlimited).unwrap();
    assert_eq!(document.root().as_str().unwrap().len(), 100_000);
}

/// Reads with `serde_json` what it accepts, minus repeated keys.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Strict)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("repeated key"));
            }
            members.next_value_seed(Strict)?;
        }
        Ok(())
    }
}

/// Whether `serde_json` takes the bytes; `None` where it has a bound of its own that we do not share.
fn accepted_by_serde(bytes: &[u8]) -> Option<bool> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    match Strict.deserialize(&mut deserializer).and_then(|()| deserializer.end()) {
        Ok(()) => Some(true),
        Err(error) if error.to_string().contains("number out of range") => None,
        Err(_) => Some(false),
    }
}

/// Every value and key of a document.
fn every<'d>(value: Value<'d>, into: &mut Vec<Value<'d>>) {
    into.push(value);
    value.items().for_each(|item| every(item, into));
    value.entries().for_each(|(key, value)| {
        into.push(key);
        every(value, into);
    });
}

/// Almost JSON: tokens in any order, or a good text with some bytes replaced, removed or doubled.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    const TOKENS: [&str; 34] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "\"a\":",
        "\"é\":1",
        "1",
        "-",
        "0",
        ".5",
        "1.5",
        "e",
        "E+1",
        "1e5",
        "true",
        "fals",
        "null",
        " ",
        "\n",
        "\\",
        "\\u",
        "\\ud83d",
        "\\ude00",
        "\t",
        "\u{7f}",
        "\u{2028}",
        "00",
        "\"\\/\"",
    ];
    let tokens =
        prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..14).prop_map(|tokens| tokens.concat().into_bytes());
    let edit = (any::<prop::sample::Index>(), any::<u8>(), prop::sample::select(b"\"\\{}[],:0e-.\xFF\t a".to_vec()));
    let edited =
        (testing::value(), any::<u64>(), prop::collection::vec(edit, 0..3)).prop_map(|(value, seed, edits)| {
            let mut bytes = testing::spell(&value, seed).into_bytes();
            for (at, what, byte) in edits {
                let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
                match what % 4 {
                    _ if bytes.is_empty() => bytes.push(byte),
                    0 => bytes[at] = byte,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, byte),
                    _ => bytes.truncate(at),
                }
            }
            bytes
        });
    prop_oneof![tokens, edited]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn accepts_what_a_strict_serde_json_accepts(bytes in almost()) {
        let ours = Document::read(bytes.clone(), testing::LIMITS);
        if let Some(theirs) = accepted_by_serde(&bytes) {
            prop_assert_eq!(ours.is_ok(), theirs, "{:?}: {:?}", String::from_utf8_lossy(&bytes), ours.err());
        }
        if let Err(fault) = ours {
            prop_assert!(fault.at <= bytes.len());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        if let Err(fault) = Document::read(bytes.clone(), LIMITS) {
            prop_assert!(fault.at <= bytes.len());
        }
    }
}

proptest! {
    /// Keys of a large object, which begin alike, end in zero bytes and are about as long as the pieces that are compared.
    #[test]
    fn the_first_key_that_repeats_is_found(keys in prop::collection::vec("(aaaaaaa){0,3}[a\\x00]{0,7}b?", 13..60)) {
        let escaped = |key: &String| format!("\"{}\":0", key.replace('\0', "\\u0000"));
        let members: Vec<String> = keys.iter().map(escaped).collect();
        let mut seen = std::collections::HashSet::new();
        let again = keys.iter().position(|key| !seen.insert(key));
        let at = again.map(|again| 1 + members[..again].iter().map(|member| member.len() + 1).sum::<usize>());
        let fault = read(&format!("{{{}}}", members.join(","))).err();
        prop_assert_eq!(fault, at.map(|at| Fault { kind: FaultKind::DuplicateKey, at }));
    }

    #[test]
    fn means_what_serde_json_means_and_every_span_reads_alone(value in testing::value(), seed: u64) {
        let text = testing::spell(&value, seed);
        let document = testing::document(&text);
        prop_assert_eq!(testing::meaning(document.root()), value);
        let mut values = Vec::new();
        every(document.root(), &mut values);
        for value in values {
            let alone = testing::document(value.raw());
            prop_assert_eq!(alone.root().kind(), value.kind());
            prop_assert_eq!(testing::meaning(alone.root()), testing::meaning(value));
            prop_assert_eq!(alone.root().span(), 0..value.raw().len());
            prop_assert_eq!(&text[value.span()], value.raw());
        }
    }

    #[test]
    fn no_part_of_a_container_is_a_document(items in testing::array(), seed: u64, cut: prop::sample::Index) {
        let text = testing::spell(&items.into(), seed);
        let text = text.trim();
        let cut = cut.index(text.len());
        prop_assert!(Document::read(text.as_bytes()[..cut].to_vec(), testing::LIMITS).is_err());
    }
}

#[test]
fn the_scan_stops_at_the_first_special_byte_only() {
    // Up to behind the second block of a long string.
    for length in (0..40).chain(90..105).chain(155..235) {
        for special in [b'"', b'\\', 0, 0x1F, b'\n'] {
            for at in 0..length {
                let mut bytes = vec![b'a'; length];
                bytes[at] = special;
                assert_eq!(scan::plain_prefix(&bytes), at);
            }
        }
    }
    let plain: Vec<u8> = (0..=u8::MAX).filter(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1F)).collect();
    assert_eq!(scan::plain_prefix(&plain), plain.len());
    for byte in plain {
        assert_eq!(scan::plain_prefix(&[byte; 300]), 300);
        assert_eq!(scan::plain_prefix(&[byte; 19]), 19);
        assert_eq!(scan::plain_prefix(&[byte, b'"', byte, byte, byte, byte, byte, byte, byte]), 1);
    }
}

#[test]
fn strings_with_escapes_are_left_out_where_they_are_long() {
    let parts = |text: &str| {
        let document = Document::read(text.as_bytes().to_vec(), testing::LIMITS).unwrap();
        document.beside_unescaped().map(str::to_owned).collect::<Vec<_>>()
    };
    let long = format!("\"\\n{}\"", "x".repeat(600));
    assert_eq!(parts(&format!(r#"{{"a":{long},"b\n":["y",{long}]}}"#)), [r#"{"a":"#, ",", r#":["y","#, "]}"]);
    assert_eq!(parts(&long), ["", ""]);
    for whole in [r#"{"a":"\n","b":"y"}"#, r#"["y"]"#, "1"] {
        assert_eq!(parts(whole), [whole]);
    }
}
