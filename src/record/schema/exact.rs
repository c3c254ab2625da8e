//! The keywords that compare numbers, without a float in sight.
//!
//! The validator's own versions go through `f64` where a non-integer meets a bound: `1.00000000000000001` is then a
//! multiple of 1, and `18014398509481985.5` not above `18014398509481985`. These take their place.

use std::cmp::Ordering;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Map, Value};

use super::fuel;
use super::tape::{Instance, Tape, equal};
use crate::message::number;

/// What one of the keywords demands. Numbers as their text.
enum Demand {
    Minimum(String),
    Maximum(String),
    ExclusiveMinimum(String),
    ExclusiveMaximum(String),
    MultipleOf(String),
    Const(Value),
}

/// The exact order of an instance's number and a schema's; ends the check where there is none.
pub(super) fn order(instance: &str, expected: &str) -> Ordering {
    fuel::looks(instance.len() / 16);
    number::compare(instance, expected).unwrap_or_else(|| fuel::give_up())
}

impl Demand {
    fn holds(&self, instance: Instance<'_>) -> bool {
        use jsonschema::json::Node as _;
        if let Self::Const(expected) = self {
            return equal(instance, expected);
        }
        let Some(instance) = instance.as_number() else { return true };
        let instance = instance.0;
        match self {
            Self::Minimum(limit) => order(instance, limit).is_ge(),
            Self::Maximum(limit) => order(instance, limit).is_le(),
            Self::ExclusiveMinimum(limit) => order(instance, limit).is_gt(),
            Self::ExclusiveMaximum(limit) => order(instance, limit).is_lt(),
            Self::MultipleOf(divisor) => number::is_multiple_of(instance, divisor).unwrap_or_else(|| fuel::give_up()),
            Self::Const(_) => false,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Minimum(limit) => format!("the value is less than the minimum of {limit}"),
            Self::Maximum(limit) => format!("the value is greater than the maximum of {limit}"),
            Self::ExclusiveMinimum(limit) => format!("the value must be greater than {limit}"),
            Self::ExclusiveMaximum(limit) => format!("the value must be less than {limit}"),
            Self::MultipleOf(divisor) => format!("the value is not a multiple of {divisor}"),
            Self::Const(expected) => format!("the value must be {expected}"),
        }
    }
}

impl<'i> Keyword<'i, Tape> for Demand {
    fn validate(&self, instance: Instance<'i>) -> Result<(), ValidationError<'i>> {
        if self.holds(instance) { Ok(()) } else { Err(ValidationError::custom(self.text())) }
    }

    fn is_valid(&self, instance: Instance<'i>) -> bool {
        self.holds(instance)
    }
}

type Compiled<'a> = Result<Box<dyn for<'i> Keyword<'i, Tape>>, ValidationError<'a>>;
type Options<'r, R> = ValidationOptions<'r, R, Tape>;

/// Puts the keywords in place of the validator's own.
pub(super) fn install<R>(options: Options<'_, R>) -> Options<'_, R> {
    fn bound<'a>(value: &Value, demand: fn(String) -> Demand) -> Compiled<'a> {
        match value {
            Value::Number(limit) if number::compare(limit.as_str(), limit.as_str()).is_some() => {
                Ok(Box::new(demand(limit.as_str().to_owned())))
            }
            _ => Err(ValidationError::custom(
                "expected a number whose exponent has at most 30 digits, found something else; correct the schema",
            )),
        }
    }
    fn divisor<'a>(value: &Value) -> Compiled<'a> {
        match value {
            Value::Number(divisor) if number::is_multiple_of("0", divisor.as_str()) == Some(true) => {
                Ok(Box::new(Demand::MultipleOf(divisor.as_str().to_owned())))
            }
            _ => Err(ValidationError::custom(
                "expected a divisor above zero with at most 18 digits, found something else; correct the schema",
            )),
        }
    }
    type Members = Map<String, Value>;
    options
        .with_keyword("minimum", |_: &Members, value: &Value, _: Location| bound(value, Demand::Minimum))
        .with_keyword("maximum", |_: &Members, value: &Value, _: Location| bound(value, Demand::Maximum))
        .with_keyword("exclusiveMinimum", |_: &Members, value: &Value, _: Location| {
            bound(value, Demand::ExclusiveMinimum)
        })
        .with_keyword("exclusiveMaximum", |_: &Members, value: &Value, _: Location| {
            bound(value, Demand::ExclusiveMaximum)
        })
        .with_keyword("multipleOf", |_: &Members, value: &Value, _: Location| divisor(value))
        .with_keyword("const", |_: &Members, value: &Value, _: Location| -> Compiled<'_> {
            Ok(Box::new(Demand::Const(value.clone())))
        })
}
