//! Facts as CEL values.

use std::collections::HashMap;
use std::sync::Arc;

use ::cel::Value as Cel;
use ::cel::objects::{Key, Map};

use crate::gates::question::{Asker, Question};
use crate::message::json::{Kind, Value};

/// Digits that a binary floating point number of 64 bits always holds: two decimals of at most so many digits that
/// differ, differ as such numbers too, and in the same direction.
const EXACT_DIGITS: usize = 15;

pub(super) fn principal(asker: &Asker) -> Cel {
    let mut members = vec![
        ("issuer", text(&asker.issuer)),
        ("subject", text(&asker.subject)),
        ("roles", list(&asker.roles)),
        ("permissions", list(&asker.permissions)),
    ];
    members.extend(asker.email.as_deref().map(|email| ("email", text(email))));
    map(members)
}

pub(super) fn call(question: &Question) -> Cel {
    let mut members = vec![
        ("server", text(&question.server)),
        ("method", text(&question.method)),
        ("name", text(question.named())),
        ("capabilities", list(&question.capabilities)),
        ("capability", text(question.capabilities.first().map(|label| &**label).unwrap_or_default())),
    ];
    if let Some(http) = &question.http {
        members.push(("authority", text(&http.authority)));
        members.push(("path", text(&http.path)));
    }
    map(members)
}

/// The arguments; an empty map where the call has none.
pub(super) fn arguments(arguments: Option<Value<'_>>) -> Result<Cel, String> {
    arguments.map_or_else(|| Ok(map(Vec::new())), json)
}

fn json(value: Value<'_>) -> Result<Cel, String> {
    Ok(match value.kind() {
        Kind::Null => Cel::Null,
        Kind::Bool => Cel::Bool(value.as_bool().unwrap_or_default()),
        Kind::String => text(value.as_str().unwrap_or_default()),
        Kind::Number => number(value.raw())?,
        Kind::Array => Cel::List(Arc::new(value.items().map(json).collect::<Result<_, _>>()?)),
        Kind::Object => {
            let members = value.entries().map(|(key, value)| {
                Ok((Key::String(Arc::new(key.as_str().unwrap_or_default().to_owned())), json(value)?))
            });
            Cel::Map(Map { map: Arc::new(members.collect::<Result<HashMap<_, _>, String>>()?) })
        }
    })
}

/// A number without fraction and exponent is an `int` (or `uint` beyond it), every other one a `double`. What neither
/// holds exactly is no number here: `1000.00000000000000001` must not pass as 1000.
fn number(raw: &str) -> Result<Cel, String> {
    let inexact = || "a number among the arguments cannot be held exactly".to_owned();
    if raw.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        let int = raw.parse().map(Cel::Int).ok();
        return int.or_else(|| raw.parse().map(Cel::UInt).ok()).ok_or_else(inexact);
    }
    let mantissa = raw.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_matches('0').len();
    match raw.parse::<f64>() {
        Ok(value) if significant <= EXACT_DIGITS && value.is_finite() && (value != 0.0 || significant == 0) => {
            Ok(Cel::Float(value))
        }
        _ => Err(inexact()),
    }
}

fn map(members: Vec<(&'static str, Cel)>) -> Cel {
    let members = members.into_iter().map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    Cel::Map(Map { map: Arc::new(members.collect()) })
}

fn text(text: &str) -> Cel {
    Cel::String(Arc::new(text.to_owned()))
}

fn list(all: &[Arc<str>]) -> Cel {
    Cel::List(Arc::new(all.iter().map(|item| text(item)).collect()))
}
