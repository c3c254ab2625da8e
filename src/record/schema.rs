//! JSON Schema over our own tape: whether arguments and structured answers fit what was approved.
//!
//! Dialects 2020-12 (the default), 2019-09, draft-07 and draft-06, by `$schema`; formats are asserted; nothing is ever
//! fetched. Numbers are the decimals that were written (`9007199254740993` is above `9007199254740992`, `1e3` is an integer,
//! `1.0000000000000001` is not 1). Work is bounded: patterns run in linear time and a check has a budget.
//!
//! Known attacks, each defended where it is named: a schema that points elsewhere ([`compile`]), that is nested too
//! deep, branches without end or lets another reader see something else ([`read`]); work that explodes ([`fuel`]); numbers that round ([`exact`]); a caller's
//! data in an error text ([`tape`], [`explain`]).

mod compile;
mod exact;
mod explain;
mod fuel;
mod read;
mod tape;

#[cfg(test)]
mod tests;

use jsonschema::Validator;

use self::fuel::{Budget, within};
use self::tape::{Instance, Tape};
use crate::message::json::Value;

/// Looks at the instance that a decision may take: a hostile schema ends after some ten milliseconds.
const DECIDE: u64 = 1_000_000;
/// Looks that finding the words for a refusal may take. Collecting errors costs more per look than deciding.
const EXPLAIN: u64 = 50_000;
/// Bytes of strings that either may read, where a byte is cheapest: a string of the largest usual request fits twice.
const READING: u64 = 2_000_000;
/// Looks, and bytes of strings, that a decision may take for each byte of the instance where that is more: an honest answer
/// may be sixteen times as large as the largest usual request.
const PER_BYTE: u64 = 4;
/// Most failures that are told.
const TOLD: usize = 8;

/// A compiled schema. Cheap to share, costly to make: compiled once, when the record loads.
pub struct Schema {
    validator: Validator<Tape>,
    /// What a byte of a string, and of a member's name, costs (see [`compile`]).
    text: u64,
    names: u64,
}

/// A schema that nothing can be checked against, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Uncompilable {
    /// Offset of the first byte that shows it, in the text of the document that the schema was read from.
    pub at: usize,
    /// What was expected, what came, how to fix it.
    pub message: String,
}

/// Why an instance is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// It breaks the schema: the failures in the order of the schema, 1 to 8 of them.
    Invalid(Vec<Failure>),
    /// It cannot be said whether it does: the check takes too much work, or a number has an exponent beyond 30 digits.
    Uncheckable,
}

/// One rule that an instance breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// JSON Pointer (RFC 6901) of what breaks it; empty for the instance itself. At most 256 bytes, `…` behind a cut.
    pub pointer: String,
    /// The keyword: `required`, `maximum`.
    pub rule: String,
    /// What is wrong, in words. Names of members may stand in it, never a value that the instance holds. At most 256 bytes.
    pub text: String,
}

impl Schema {
    /// Compiles the schema that `schema` holds, a member of a definition.
    ///
    /// # Errors
    /// [`Uncompilable`]: it breaks its meta-schema, names another dialect, refers to something that is not in it, is nested
    /// too deep, or has a pattern that does not run in linear time.
    pub fn compile(schema: Value<'_>) -> Result<Self, Uncompilable> {
        compile::schema(schema)
    }

    /// Checks `instance`.
    ///
    /// # Errors
    /// [`Violation`]; [`Violation::Uncheckable`] is a refusal too.
    pub fn check(&self, instance: Value<'_>) -> Result<(), Violation> {
        let more = PER_BYTE.saturating_mul(u64::try_from(instance.raw().len()).unwrap_or(u64::MAX));
        let instance = Instance::Value(instance);
        let budget = Budget { reading: READING.max(more), ..self.budget(DECIDE.max(more)) };
        match within(budget, || self.validator.is_valid(instance)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Violation::Invalid(self.failures(instance))),
            Err(fuel::Exhausted) => Err(Violation::Uncheckable),
        }
    }

    /// What is wrong with an instance that was decided on: all of it where that is cheap, else the first failure, else the
    /// fact.
    fn failures(&self, instance: Instance<'_>) -> Vec<Failure> {
        let all = within(self.budget(EXPLAIN), || {
            self.validator.iter_errors(instance).take(TOLD).map(|error| explain::failure(&error)).collect::<Vec<_>>()
        });
        if let Some(failures) = all.ok().filter(|failures| !failures.is_empty()) {
            return failures;
        }
        let first = within(self.budget(EXPLAIN), || {
            self.validator.validate(instance).err().map(|error| explain::failure(&error))
        });
        vec![first.ok().flatten().unwrap_or_else(explain::unexplained)]
    }

    fn budget(&self, looks: u64) -> Budget {
        Budget { looks, reading: READING, text: self.text, names: self.names }
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}
