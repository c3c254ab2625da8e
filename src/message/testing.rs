//! What the tests of this room share: arbitrary JSON values and arbitrary spellings of them.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::json::{self, Document, Kind, Limits};
use super::number;

/// Bounds that no test of the room meets by chance.
pub(crate) const LIMITS: Limits = Limits { depth: 100_000, nodes: 1_000_000 };

/// Reads what must be readable.
pub(crate) fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), LIMITS).expect(text)
}

/// An arbitrary JSON value. Numbers are integers, so that `serde_json` compares them exactly.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4).prop_map(|members| Value::from(Map::from_iter(members))),
        ]
    })
}

/// An arbitrary array.
pub(crate) fn array() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(value(), 0..12)
}

/// An arbitrary object.
pub(crate) fn object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((text(), value()), 0..16).prop_map(Map::from_iter)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]{0,2}", "[ -~]{0,20}", "\\PC{0,6}", "[\"\\\\/\u{0}-\u{1f}é\u{1F600}]{0,6}"]
}

/// What our reader read, as `serde_json` has it; integers however they are spelled.
pub(crate) fn meaning(value: json::Value<'_>) -> Value {
    match value.kind() {
        Kind::Null => Value::Null,
        Kind::Bool => value.as_bool().unwrap().into(),
        Kind::String => value.as_str().unwrap().into(),
        Kind::Array => value.items().map(meaning).collect(),
        Kind::Object => {
            value.entries().map(|(key, value)| (key.as_str().unwrap().to_owned(), meaning(value))).collect()
        }
        Kind::Number => {
            let text = number::canonical(value.raw()).unwrap();
            let (digits, zeros) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{digits}{}", "0".repeat(zeros.parse().unwrap())).parse::<i64>().unwrap().into()
        }
    }
}

/// One of the many texts of `value`: members in another order, white space, escapes, exponents, all picked by `seed`.
pub(crate) fn spell(value: &Value, seed: u64) -> String {
    let mut out = String::new();
    Speller { out: &mut out, state: seed | 1 }.value(value);
    out
}

struct Speller<'a> {
    out: &'a mut String,
    state: u64,
}

impl Speller<'_> {
    /// xorshift: tests must repeat.
    fn pick(&mut self, choices: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap() % choices
    }

    fn space(&mut self) {
        const SPACES: [&str; 6] = ["", "", "", " ", "\n\t", "\r\n"];
        let space = SPACES[self.pick(SPACES.len())];
        self.out.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::Array(items) => {
                self.out.push('[');
                for (n, item) in items.iter().enumerate() {
                    self.out.push_str(if n > 0 { "," } else { "" });
                    self.value(item);
                }
                self.space();
                self.out.push(']');
            }
            Value::Object(members) => self.object(members),
            Value::String(text) => self.string(text),
            Value::Number(number) => self.number(number.as_i64().unwrap()),
            other => self.out.push_str(&other.to_string()),
        }
        self.space();
    }

    fn object(&mut self, members: &Map<String, Value>) {
        let mut members: Vec<_> = members.iter().collect();
        for n in (1..members.len()).rev() {
            let other = self.pick(n + 1);
            members.swap(n, other);
        }
        self.out.push('{');
        for (n, (key, value)) in members.into_iter().enumerate() {
            self.out.push_str(if n > 0 { "," } else { "" });
            self.space();
            self.string(key);
            self.space();
            self.out.push(':');
            self.value(value);
        }
        self.space();
        self.out.push('}');
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            if self.pick(4) == 0 || c < ' ' || matches!(c, '"' | '\\') {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").unwrap();
                }
            } else {
                self.out.push(c);
            }
        }
        self.out.push('"');
    }

    fn number(&mut self, number: i64) {
        let text = match self.pick(4) {
            0 => format!("{number}.000"),
            1 if number != 0 => format!("{number}000e-3"),
            2 => format!("{number}E+00"),
            _ => number.to_string(),
        };
        self.out.push_str(&text);
    }
}
