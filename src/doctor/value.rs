//! Reading protobuf's JSON form: absent is default, numbers and enum values come in two spellings.

use std::time::Duration;

use serde_json::Value;

static ABSENT: Value = Value::Null;

/// The value that a dotted path of keys leads to; null when there is none.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, |value, key| value.get(key)).unwrap_or(&ABSENT)
}

/// The member `key`, which may hold dots; null when there is none.
pub(super) fn member<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&ABSENT)
}

/// The items of a list; none of anything else.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map; none of anything else.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// A string; empty when there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether something is there.
pub(super) fn is_set(value: &Value) -> bool {
    !value.is_null()
}

/// A boolean as Envoy reads it: its YAML reader takes `yes` and `on` for true as well.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(word) => ["true", "yes", "on", "y"].iter().any(|yes| word.eq_ignore_ascii_case(yes)),
        _ => false,
    }
}

/// A whole number, also as a string.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A protobuf duration, `0.25s`; `None` when there is none, or a negative one.
pub(super) fn duration(value: &Value) -> Option<Duration> {
    let seconds: f64 = value.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The name of an enum value, also where it is written as its number; the first name when there is none.
pub(super) fn word<'a>(value: &'a Value, names: &[&'a str]) -> &'a str {
    match value {
        Value::String(name) => name,
        Value::Number(number) => {
            let index = number.as_u64().and_then(|number| usize::try_from(number).ok());
            index.and_then(|index| names.get(index)).copied().unwrap_or("UNKNOWN")
        }
        _ => names.first().copied().unwrap_or_default(),
    }
}

/// The strings of a list.
pub(super) fn words(value: &Value) -> impl Iterator<Item = &str> {
    items(value).iter().map(text)
}

/// Whether `test` holds for any object within `value`, itself included.
pub(super) fn any_within(value: &Value, test: &impl Fn(&serde_json::Map<String, Value>) -> bool) -> bool {
    match value {
        Value::Object(map) => test(map) || map.values().any(|below| any_within(below, test)),
        Value::Array(items) => items.iter().any(|item| any_within(item, test)),
        _ => false,
    }
}

/// `value` in few words.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 120 { text } else { format!("{}…", text.chars().take(119).collect::<String>()) }
}

/// Whether a typed configuration has this message name, `ExternalProcessor` say.
pub(super) fn is_a(value: &Value, message: &str) -> bool {
    text(member(value, "@type")).rsplit('.').next() == Some(message)
}

/// `place.key[name]`, or the index of an item that has no name.
pub(super) fn item_place(place: &str, key: &str, index: usize, item: &Value) -> String {
    match text(member(item, "name")) {
        "" => format!("{place}.{key}[{index}]"),
        name => format!("{place}.{key}[{name}]"),
    }
}
