//! The strict reader against other readers: whatever it accepts, they all read the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use portcullis::message::json::{Document, Kind, Limits, Value};
use portcullis::protocol::{Message, keys};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

const LIMITS: Limits = Limits { depth: 16, nodes: 4096 };
/// How `serde_json` hands over numbers of any precision: as a map with this one key.
const NUMBER: &str = "$serde_json::private::Number";

/// JSON as `serde_json` reads it, with every member, the repeated ones too.
enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(key) = members.next_key::<String>()? {
            if key == NUMBER {
                return Ok(Json::Number(members.next_value()?));
            }
            all.push((key, members.next_value()?));
        }
        Ok(Json::Map(all))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

impl Json {
    fn depth(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    fn nodes(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::nodes).sum::<usize>(),
            Self::Map(members) => 1 + members.iter().map(|(_, value)| 1 + value.nodes()).sum::<usize>(),
            _ => 1,
        }
    }

    fn repeats(&self) -> bool {
        match self {
            Self::List(items) => items.iter().any(Self::repeats),
            Self::Map(members) => {
                let keys: BTreeSet<_> = members.iter().map(|(key, _)| key).collect();
                keys.len() < members.len() || members.iter().any(|(_, value)| value.repeats())
            }
            _ => false,
        }
    }
}

/// Any bytes.
pub fn check(data: &[u8]) {
    // Its key for numbers is one that serde_json cannot read as what it is.
    if data.windows(NUMBER.len()).any(|window| window == NUMBER.as_bytes()) {
        return;
    }
    let ours = Document::read(data.to_vec(), LIMITS);
    let theirs = std::str::from_utf8(data).ok().map(serde_json::from_str::<Json>);
    match (&ours, theirs) {
        (Ok(document), Some(Ok(json))) => {
            assert!(json.depth() <= LIMITS.depth && json.nodes() <= LIMITS.nodes, "bounds do not hold");
            same(document.root(), &json);
            spans(document, document.root());
            folding(document.root(), &json);
            variants(document);
        }
        (Ok(_), None) => panic!("accepted what is not UTF-8"),
        // 1e999 is JSON, and out of serde_json's range where it reads no numbers of any precision.
        (Ok(_), Some(Err(error))) => assert!(error.to_string().contains("out of range"), "accepted, but {error}"),
        (Err(fault), theirs) => {
            assert!(fault.at <= data.len(), "{fault} outside of the text");
            if let Some(Ok(json)) = theirs {
                let bounded = json.depth() > LIMITS.depth || json.nodes() > LIMITS.nodes;
                assert!(bounded || json.repeats() || surrogates(data), "refused what everybody reads: {fault}");
            }
        }
    }
}

/// Whether there may be an escape of half a surrogate pair, where `serde_json` has had more than one opinion.
fn surrogates(data: &[u8]) -> bool {
    data.windows(3).any(|window| matches!(window, [b'\\', b'u', b'd' | b'D']))
}

/// Readers that take the first of two members and such that take the last see what we see.
fn same(ours: Value<'_>, theirs: &Json) {
    match theirs {
        Json::Null => assert!(ours.is_null(), "{ours:?}"),
        Json::Bool(value) => assert_eq!(ours.as_bool(), Some(*value)),
        Json::Text(text) => assert_eq!(ours.as_str(), Some(&**text)),
        Json::Number(text) => {
            let number = |text: &str| text.parse::<f64>().expect("a number");
            let own = number(ours.as_number().expect("a number"));
            assert!(own.total_cmp(&number(text)).is_eq(), "{ours:?} is {text} to others");
        }
        Json::List(items) => {
            assert_eq!((ours.kind(), ours.len()), (Kind::Array, items.len()), "{ours:?}");
            ours.items().zip(items).for_each(|(ours, theirs)| same(ours, theirs));
        }
        Json::Map(members) => {
            assert_eq!((ours.kind(), ours.len()), (Kind::Object, members.len()), "{ours:?}");
            let (mut first, mut last) = (BTreeMap::new(), BTreeMap::new());
            for (key, value) in members {
                first.entry(key).or_insert(value);
                last.insert(key, value);
            }
            for (key, value) in first.into_iter().chain(last) {
                same(ours.get(key).expect("a member that others find"), value);
            }
            let keys: Vec<_> = ours.entries().filter_map(|(key, _)| key.as_str()).collect();
            assert!(keys.iter().eq(members.iter().map(|(key, _)| key)), "the keys in order: {keys:?}");
        }
    }
}

/// Every value stands alone where its span says.
fn spans(document: &Document, value: Value<'_>) {
    let alone = Document::read(value.raw().as_bytes().to_vec(), LIMITS).expect("a value reads alone");
    assert_eq!(alone.root().kind(), value.kind());
    assert_eq!(document.text().get(value.span()), Some(value.raw()));
    assert_eq!(alone.root().span(), 0..value.raw().len());
    if value.len() < 8 {
        value.items().for_each(|item| spans(document, item));
        value.entries().for_each(|(_, member)| spans(document, member));
    }
}

/// The members by which a call is judged.
const JUDGED: [&[&str]; 10] = [
    &["method"],
    &["id"],
    &["params", "name"],
    &["params", "uri"],
    &["params", "arguments"],
    &["params", "ref", "name"],
    &["params", "ref", "uri"],
    &["params", "notifications", "resourceSubscriptions"],
    &["params", "_meta", "io.modelcontextprotocol/protocolVersion"],
    &["params", "taskId"],
];

/// A message that passes is the same to readers that do not mind the case of keys, by either of the usual foldings, whether
/// they take the first or the last member.
fn folding(root: Value<'_>, theirs: &Json) {
    if Message::read(root).is_err() || keys::request_variant(root).is_some() {
        return;
    }
    for path in JUDGED {
        for fold in [lower as fn(&str) -> String, upper] {
            for last in [false, true] {
                match (root.path(path), follow(theirs, path, fold, last)) {
                    (Some(ours), Some(theirs)) => same(ours, theirs),
                    (None, None) => {}
                    (ours, _) => panic!("{path:?} is {ours:?} to us and something else to a reader that ignores case"),
                }
            }
        }
    }
}

/// A member in another case beside one by which a call is judged is never overlooked.
fn variants(document: &Document) {
    let root = document.root();
    if Message::read(root).is_err() || keys::request_variant(root).is_some() {
        return;
    }
    for path in JUDGED {
        let Some((key, parents)) = path.split_last().filter(|_| root.path(path).is_some()) else { continue };
        let at = root.path(parents).expect("the object that it is in").span().start + 1;
        for variant in [key.to_uppercase(), format!("{}{}", key[..1].to_uppercase(), &key[1..])] {
            let (before, behind) = document.text().split_at(at);
            let Ok(more) = Document::read(format!("{before}\"{variant}\":0,{behind}").into_bytes(), LIMITS) else {
                continue;
            };
            let seen = Message::read(more.root()).is_err() || keys::request_variant(more.root()).is_some();
            assert!(seen, "{variant} beside {path:?} is overlooked");
        }
    }
}

fn follow<'j>(json: &'j Json, path: &[&str], fold: fn(&str) -> String, last: bool) -> Option<&'j Json> {
    path.iter().try_fold(json, |json, name| {
        let Json::Map(members) = json else { return None };
        let mut found = members.iter().filter(|(key, _)| key == name || fold(key) == fold(name));
        let (_, value) = if last { found.next_back()? } else { found.next()? };
        Some(value)
    })
}

/// As Go and Python fold: `ſ` and the Kelvin sign too.
fn lower(key: &str) -> String {
    key.to_lowercase().replace('ſ', "s")
}

/// As Java compares without case, letter by letter: the dotless and the dotted i are an i, too.
fn upper(key: &str) -> String {
    key.replace('İ', "i").to_uppercase().to_lowercase()
}
