//! `cel`: a rule in the Common Expression Language over `principal`, `call` and `arguments`, compiled and type-checked
//! when the configuration loads.
//!
//! A rule that cannot be decided (a field that is missing, a type that does not fit, a number that cannot be held
//! exactly, too much work) refuses: a rule has no failure of its own that one could let pass.

mod check;
mod cost;
mod value;

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::cel::{Context, Env, Program, Value};

use super::opinion::{Denial, Opinion};
use super::question::Question;
use crate::refusal::GateCode;

/// Most characters of a rule.
const LENGTH: usize = 4096;
/// Most steps of one evaluation; some tens of milliseconds at the very worst.
const STEPS: u64 = 200_000;

const DENIED: &str = "cel.denied";
const UNDECIDABLE: &str = "cel.undecidable";

/// A compiled rule.
pub(super) struct Rule {
    program: Program,
    env: Arc<Env>,
}

impl Rule {
    /// Compiles and checks a rule.
    ///
    /// # Errors
    /// What is wrong and at which character.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.chars().count() > LENGTH {
            return Err(format!("expected a rule of at most {LENGTH} characters; shorten it"));
        }
        let env = Arc::new(Env::stdlib().with_optional_support(false));
        let program = catch_unwind(AssertUnwindSafe(|| env.compile(text)))
            .map_err(|_| "expected a CEL expression, found one that cannot be parsed".to_owned())?
            .map_err(|errors| {
                let told: Vec<String> = errors
                    .errors
                    .iter()
                    .map(|error| format!("at line {}, character {}: {}", error.pos.0, error.pos.1, error.msg))
                    .collect();
                format!("expected a CEL expression; {}", told.join("; "))
            })?;
        check::rule(&program).map_err(|fault| {
            let at = program.source_info().offset_for(fault.at).map_or(0, |(start, _)| start);
            format!("at character {}: {}", at.saturating_add(1), fault.message)
        })?;
        Ok(Self { program, env })
    }

    /// What the rule says about a call.
    pub(super) fn ask(&self, question: &Question) -> Opinion {
        match self.decide(question) {
            Ok(true) => Opinion::Allow,
            Ok(false) => deny(
                DENIED,
                "The call does not satisfy a rule of the operator. Trying again unchanged will not help.",
                None,
            ),
            Err(why) => deny(
                UNDECIDABLE,
                "A rule of the operator could not be decided for this call, so it was refused. Check that the arguments are complete.",
                Some(why),
            ),
        }
    }

    fn decide(&self, question: &Question) -> Result<bool, String> {
        let arguments = question.arguments_value();
        let steps = cost::estimate(self.program.expression(), &cost::Size::of(question, arguments));
        if steps > STEPS {
            return Err(format!("it would take {steps} steps on these arguments, more than {STEPS}"));
        }
        let mut context = Context::with_env(Arc::clone(&self.env));
        context.add_variable_from_value("principal", value::principal(&question.principal));
        context.add_variable_from_value("call", value::call(question));
        context.add_variable_from_value("arguments", value::arguments(arguments)?);
        // The interpreter is somebody else's code and runs on a caller's data.
        let evaluated = catch_unwind(AssertUnwindSafe(|| self.program.execute(&context)));
        match evaluated {
            Ok(Ok(Value::Bool(holds))) => Ok(holds),
            Ok(Ok(other)) => Err(format!("expected true or false, got a value of type {}", other.type_of())),
            // Its text would quote arguments, which are never logged.
            Ok(Err(error)) => Err(format!("it failed: {}", kind(&error))),
            Err(_) => Err("the evaluation panicked".to_owned()),
        }
    }
}

fn deny(code: &str, text: &str, log: Option<String>) -> Opinion {
    Opinion::Deny(Box::new(Denial {
        code: GateCode::parse(code).ok(),
        text: Some(text.to_owned()),
        log,
        ..Denial::default()
    }))
}

/// What kind of failure it was, and the names in the rule that it is about.
fn kind(error: &::cel::ExecutionError) -> String {
    use ::cel::ExecutionError as E;
    match error {
        E::NoSuchKey(key) => format!("no field `{key}`"),
        E::NoSuchOverload(overload) => overload.to_string(),
        E::UndeclaredReference(name) => format!("unknown name `{name}`"),
        E::UnexpectedType { got, want } => format!("expected {want}, got {got}"),
        E::FunctionError { function, .. } => format!("{function}() failed"),
        E::DivisionByZero(_) | E::RemainderByZero(_) => "division by zero".to_owned(),
        E::Overflow(operator, ..) => format!("overflow in {operator}"),
        E::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        _ => "types that do not fit".to_owned(),
    }
}
