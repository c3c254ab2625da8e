//! Templates as one automaton. It is put together from states by hand, not from regular expressions as text, because
//! named parameters in any order share their states per subset, which no expression can say.
//!
//! States are made from the end of a template to its beginning: each function takes the state that follows and returns
//! the state that leads there.

use regex_automata::nfa::thompson::{BuildError, Builder, NFA, Transition};
use regex_automata::util::primitives::StateID;

use super::{Modifier, Operator, Part, Template, Variable};

/// The states do not fit [`SIZE_LIMIT`]: the only way in which making them fails.
struct TooLarge;

impl From<BuildError> for TooLarge {
    fn from(_: BuildError) -> Self {
        Self
    }
}

type Made = Result<StateID, TooLarge>;

/// Bytes that the states of one set may take.
pub(super) const SIZE_LIMIT: usize = 32 << 20;

/// How short a value may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// At least one character: what an expansion of a value that is there looks like.
    Filled,
    /// Also none: what some servers' matchers accept all the same.
    MayBeEmpty,
}

/// The automaton of all `templates`, each a pattern in its order with [`Values::Filled`], then each once more with
/// [`Values::MayBeEmpty`]. Matches must be asked for at the end of the text.
///
/// On failure, the index of the first template that does not fit [`SIZE_LIMIT`].
pub(super) fn build(templates: &[&Template]) -> Result<NFA, usize> {
    let mut builder = Builder::new();
    // Building with a limit from the start: what is too large is noticed before it was made.
    let limited = builder.set_size_limit(Some(SIZE_LIMIT));
    limited.map_err(|_| 0_usize)?;
    let mut starts = Vec::with_capacity(templates.len().saturating_mul(2));
    for values in [Values::Filled, Values::MayBeEmpty] {
        for (index, template) in templates.iter().enumerate() {
            starts.push(pattern(&mut builder, template, values).map_err(|_| index)?);
        }
    }
    let last = templates.len().saturating_sub(1);
    let start = builder.add_union(starts).map_err(|_| last)?;
    builder.build(start, start).map_err(|_| last)
}

fn pattern(builder: &mut Builder, template: &Template, values: Values) -> Made {
    builder.start_pattern()?;
    let end = builder.add_match()?;
    let start = template.parts.iter().rev().try_fold(end, |next, part| match part {
        Part::Literal(text) => literal(builder, text, next),
        Part::Expression(operator, variables) if operator.is_named() => {
            named(builder, *operator, variables, values, next)
        }
        Part::Expression(operator, variables) => listed(builder, *operator, variables, values, next),
    })?;
    builder.finish_pattern(start)?;
    Ok(start)
}

fn literal(builder: &mut Builder, text: &str, next: StateID) -> Made {
    let byte = |next, byte| Ok(builder.add_range(Transition { start: byte, end: byte, next })?);
    text.bytes().rev().try_fold(next, byte)
}

/// Values in order, all of them there.
fn listed(builder: &mut Builder, operator: Operator, variables: &[Variable], values: Values, next: StateID) -> Made {
    let (first, separator) = operator.first_and_separator();
    let forbidden: &[u8] = if operator.is_reserved() { b"" } else { b"#,/?" };
    let mut next = next;
    for (index, variable) in variables.iter().enumerate().rev() {
        next = match variable.modifier {
            Modifier::None => repeated(builder, forbidden, values, next)?,
            Modifier::Prefix(most) => limited(builder, forbidden, most, values, next)?,
            Modifier::Explode => {
                // (value separator)* value
                let again = builder.add_union(vec![])?;
                let value = repeated(builder, forbidden, values, again)?;
                let more = literal(builder, separator, value)?;
                builder.patch(again, more)?;
                builder.patch(again, next)?;
                value
            }
        };
        next = literal(builder, if index == 0 { first } else { separator }, next)?;
    }
    Ok(next)
}

/// Named parameters in any order, each at most once: a state per subset of those that were there.
fn named(builder: &mut Builder, operator: Operator, variables: &[Variable], values: Values, next: StateID) -> Made {
    let (first, separator) = operator.first_and_separator();
    // Exploded parameters may come again, so only the others are remembered.
    let once: Vec<&str> = variables
        .iter()
        .filter(|variable| variable.modifier != Modifier::Explode)
        .map(|variable| variable.name.as_str())
        .collect();
    let bit = |variable: &Variable| once.iter().position(|name| *name == variable.name).map_or(0, |at| 1_usize << at);
    let subsets = 1_usize << once.len();
    let mut seen = Vec::with_capacity(subsets);
    for _ in 0..subsets {
        seen.push(builder.add_union(vec![])?);
    }
    let start = builder.add_union(vec![])?;
    for (subset, state) in seen.iter().enumerate() {
        for variable in variables.iter().filter(|variable| subset & bit(variable) == 0) {
            let Some(after) = seen.get(subset | bit(variable)) else { continue };
            let value = parameter(builder, operator, variable, values, *after)?;
            let more = literal(builder, separator, value)?;
            builder.patch(*state, more)?;
            if subset == 0 {
                let begin = literal(builder, first, value)?;
                builder.patch(start, begin)?;
            }
        }
        builder.patch(*state, next)?;
    }
    builder.patch(start, next)?;
    Ok(start)
}

/// `name=value`; of a path parameter the value may be left out.
fn parameter(builder: &mut Builder, operator: Operator, variable: &Variable, values: Values, next: StateID) -> Made {
    let forbidden: &[u8] = if operator == Operator::PathParameter { b"#,/;?" } else { b"#&,/?" };
    let value = match variable.modifier {
        Modifier::Prefix(most) => limited(builder, forbidden, most, values, next)?,
        Modifier::None | Modifier::Explode => repeated(builder, forbidden, values, next)?,
    };
    let mut equals = literal(builder, "=", value)?;
    if operator == Operator::PathParameter {
        equals = builder.add_union(vec![equals, next])?;
    }
    literal(builder, &variable.name, equals)
}

/// One or more characters, or any number.
fn repeated(builder: &mut Builder, forbidden: &[u8], values: Values, next: StateID) -> Made {
    let again = builder.add_union(vec![])?;
    let one = character(builder, forbidden, again)?;
    builder.patch(again, one)?;
    builder.patch(again, next)?;
    Ok(if values == Values::MayBeEmpty { again } else { one })
}

/// One to `most` characters, or none to `most`.
fn limited(builder: &mut Builder, forbidden: &[u8], most: u16, values: Values, next: StateID) -> Made {
    let mut one = character(builder, forbidden, next)?;
    for _ in 1..most {
        let either = builder.add_union(vec![one, next])?;
        one = character(builder, forbidden, either)?;
    }
    if values == Values::MayBeEmpty { Ok(builder.add_union(vec![one, next])?) } else { Ok(one) }
}

/// One character of a URI other than the `forbidden` ones (ascending): a byte, or a percent-encoded octet.
fn character(builder: &mut Builder, forbidden: &[u8], next: StateID) -> Made {
    let digits = |next| [(b'0', b'9'), (b'A', b'F')].map(|(start, end)| Transition { start, end, next }).to_vec();
    let low = builder.add_sparse(digits(next))?;
    let high = builder.add_sparse(digits(low))?;
    let mut transitions = Vec::new();
    for byte in b'!'..=b'~' {
        let to = if byte == b'%' { high } else { next };
        match transitions.last_mut() {
            _ if forbidden.contains(&byte) => {}
            Some(Transition { end, next, .. }) if end.checked_add(1) == Some(byte) && *next == to => *end = byte,
            _ => transitions.push(Transition { start: byte, end: byte, next: to }),
        }
    }
    Ok(builder.add_sparse(transitions)?)
}
