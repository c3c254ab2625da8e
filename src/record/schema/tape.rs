//! Our tape as the validator sees it: no copy, no rounding, and every look is paid for.
//!
//! Two departures from what a representation usually does. Numbers are compared by [`super::exact`], so the forms asked
//! for here decide nothing but whether a number is an integer. And [`Node::to_value`], which the validator uses to put the
//! offending value into its errors, gives `null`: a caller's data never gets into a text.

use std::borrow::Cow;
use std::collections::HashSet;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use serde_json::Number;

use super::fuel;
use crate::message::json::{Entries, Items, Kind, Value};
use crate::message::{number, write};

/// The representation.
pub(super) struct Tape;

/// A value of a document, or a member's name on its own (`propertyNames`).
#[derive(Clone, Copy)]
pub(super) enum Instance<'a> {
    Value(Value<'a>),
    Name(&'a str),
}

impl Json for Tape {
    type Node<'a> = Instance<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = String;

    /// A look-up walks the members.
    const KEYS_PER_LOOKUP: usize = 4;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(buffer: &mut String, string: &str, f: impl FnOnce(Instance<'_>) -> T) -> T {
        buffer.clear();
        buffer.push_str(string);
        f(Instance::Name(buffer))
    }
}

impl<'a> Instance<'a> {
    fn kind(self) -> Kind {
        fuel::look();
        match self {
            Self::Value(value) => value.kind(),
            Self::Name(_) => Kind::String,
        }
    }

    fn of_kind(self, kind: Kind) -> Option<Value<'a>> {
        fuel::look();
        match self {
            Self::Value(value) if value.kind() == kind => Some(value),
            _ => None,
        }
    }

    /// The text of a string, not paid for yet.
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Value(value) => value.as_str(),
            Self::Name(name) => Some(name),
        }
    }
}

/// Equality of JSON Schema: numbers by value, members in any order.
pub(super) fn equal(instance: Instance<'_>, expected: &serde_json::Value) -> bool {
    use serde_json::Value as Expected;
    match (instance.kind(), expected) {
        (Kind::Null, Expected::Null) => true,
        (Kind::Bool, Expected::Bool(expected)) => instance.as_boolean() == Some(*expected),
        (Kind::String, Expected::String(expected)) => {
            fuel::looks(expected.len() / 16);
            instance.text() == Some(expected)
        }
        (Kind::Number, Expected::Number(expected)) => instance
            .of_kind(Kind::Number)
            .is_some_and(|value| super::exact::order(value.raw(), expected.as_str()).is_eq()),
        (Kind::Array, Expected::Array(expected)) => instance.of_kind(Kind::Array).is_some_and(|array| {
            array.len() == expected.len()
                && array.items().zip(expected).all(|(item, expected)| equal(Instance::Value(item), expected))
        }),
        (Kind::Object, Expected::Object(expected)) => instance.of_kind(Kind::Object).is_some_and(|object| {
            object.len() == expected.len()
                && object.entries().all(|(key, value)| {
                    let expected = key.as_str().and_then(|key| expected.get(key));
                    expected.is_some_and(|expected| equal(Instance::Value(value), expected))
                })
        }),
        _ => false,
    }
}

impl<'a> Node<'a, Tape> for Instance<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = Decimal<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        self.of_kind(Kind::Object).map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        self.of_kind(Kind::Array).map(Elements)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        fuel::look();
        let text = self.text()?;
        fuel::text(text.len());
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<Decimal<'a>> {
        let Self::Value(value) = self else {
            fuel::look();
            return None;
        };
        if value.kind() != Kind::Number {
            fuel::look();
            return None;
        }
        // One look at what it is and one at the digits, paid for at once.
        let text = value.raw();
        fuel::looks((text.len() / 16).saturating_add(1));
        Some(Decimal(text))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.of_kind(Kind::Bool)?.as_bool()
    }

    fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    fn is_number(&self) -> bool {
        self.kind() == Kind::Number
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            Kind::Null => JsonType::Null,
            Kind::Bool => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.text()?;
        fuel::looks(text.len() / 64);
        u64::try_from(text.chars().count()).ok()
    }

    fn equals_value(&self, expected: &serde_json::Value) -> bool {
        equal(*self, expected)
    }

    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(serde_json::Value::Null)
    }

    /// Values of one document begin at different bytes. A name's buffer is its own.
    fn identity(&self) -> Option<NodeIdentity> {
        fuel::look();
        Some(match self {
            Self::Value(value) => {
                let document = std::ptr::from_ref(value.document()).addr();
                NodeIdentity::tagged(document, u32::try_from(value.span().start).ok()?)
            }
            Self::Name(name) => NodeIdentity::new(name.as_ptr().addr()),
        })
    }
}

/// A number as it was written.
#[derive(Clone, Copy)]
pub(super) struct Decimal<'a>(pub(super) &'a str);

impl JsonNumber for Decimal<'_> {
    fn as_u64(&self) -> Option<u64> {
        whole(self.0)?.try_into().ok()
    }

    fn as_i64(&self) -> Option<i64> {
        whole(self.0)?.try_into().ok()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok().filter(|float: &f64| float.is_finite())
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Owned(serde_number(self.0).unwrap_or_else(|| fuel::give_up()))
    }

    fn is_integer(&self) -> bool {
        number::is_integer(self.0)
    }
}

/// The same number as `serde_json` keeps it: an integer of 64 bits in its plain spelling, which is where readers of a schema
/// look for lengths and counts, everything else as its text. Reads a number and nothing else, so no text can mean more.
pub(super) fn serde_number(text: &str) -> Option<Number> {
    let whole = whole(text);
    let unsigned = whole.and_then(|number| u64::try_from(number).ok()).map(Number::from);
    let signed = || whole.and_then(|number| i64::try_from(number).ok()).map(Number::from);
    unsigned.or_else(signed).or_else(|| text.parse().ok())
}

/// The value of a number that is an integer of 128 bits, however it is spelled.
fn whole(text: &str) -> Option<i128> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let canonical = number::canonical(text)?;
    let (digits, exponent) = canonical.split_once('e').unwrap_or((&canonical, "0"));
    let scale = 10_i128.checked_pow(exponent.parse().ok()?)?;
    digits.parse::<i128>().ok()?.checked_mul(scale)
}

/// An object.
pub(super) struct Members<'a>(Value<'a>);

impl<'a> Object<'a, Tape> for Members<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = MemberIter<'a>;

    fn len(&self) -> usize {
        fuel::look();
        self.0.len()
    }

    fn get(&self, key: &Box<str>) -> Option<Instance<'a>> {
        fuel::looks(self.0.len() / 8);
        self.0.get(key).map(Instance::Value)
    }

    fn members(&self) -> MemberIter<'a> {
        MemberIter(self.0.entries())
    }
}

/// The members of an object, in written order.
pub(super) struct MemberIter<'a>(Entries<'a>);

impl<'a> Iterator for MemberIter<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        let name = key.as_str()?;
        fuel::name(name.len());
        Some((name, Instance::Value(value)))
    }
}

/// An array.
pub(super) struct Elements<'a>(Value<'a>);

impl<'a> Array<'a, Tape> for Elements<'a> {
    type Node = Instance<'a>;
    type ElementsIter = ElementIter<'a>;

    fn len(&self) -> usize {
        fuel::look();
        self.0.len()
    }

    fn elements(&self) -> ElementIter<'a> {
        ElementIter(self.0.items())
    }

    /// Two values are equal exactly when their canonical forms are.
    fn is_unique(&self) -> bool {
        fuel::looks(self.0.raw().len() / 4);
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.items().all(|item| {
            let mut canonical = Vec::with_capacity(item.raw().len());
            match write::canonical(item, &mut canonical) {
                Ok(()) => seen.insert(canonical),
                Err(_) => fuel::give_up(),
            }
        })
    }
}

/// The elements of an array.
pub(super) struct ElementIter<'a>(Items<'a>);

impl<'a> Iterator for ElementIter<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        fuel::look();
        self.0.next().map(Instance::Value)
    }
}
