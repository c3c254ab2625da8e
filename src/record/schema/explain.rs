//! Failures in words. What the validator would say with the caller's value in it is said without.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use super::Failure;

/// Most bytes of a pointer and of a text.
const CAP: usize = 256;
/// What stands for the caller's value.
const VALUE: &str = "the value";

/// One failure.
pub(super) fn failure(error: &ValidationError<'_>) -> Failure {
    Failure { pointer: cut(error.instance_path().as_str()), rule: rule(error).to_owned(), text: cut(&text(error)) }
}

/// The failure of an instance that breaks the schema in ways that take too long to name.
pub(super) fn unexplained() -> Failure {
    Failure { pointer: String::new(), rule: "schema".to_owned(), text: "the value does not fit the schema".to_owned() }
}

fn rule<'e>(error: &'e ValidationError<'_>) -> &'e str {
    match error.kind() {
        ValidationErrorKind::FalseSchema => "false",
        kind => kind.keyword(),
    }
}

fn text(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::AdditionalItems { limit } => format!("more than {limit} items are not allowed"),
        ValidationErrorKind::FalseSchema => "nothing is allowed here".to_owned(),
        ValidationErrorKind::PropertyNames { error } => {
            format!("the name of a property is not allowed: {}", error.masked_with("the name"))
        }
        ValidationErrorKind::Not { .. } => "the value is of a kind that is ruled out".to_owned(),
        ValidationErrorKind::AnyOf { .. } => "the value fits none of the schemas that it may fit".to_owned(),
        ValidationErrorKind::OneOfNotValid { .. } => "the value fits none of the schemas that it must fit".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "the value fits more than one of the schemas of which it must fit exactly one".to_owned()
        }
        ValidationErrorKind::Contains => "the array does not contain as many fitting items as it must".to_owned(),
        _ => error.masked_with(VALUE).to_string(),
    }
}

/// `text`, cut at a character border where it is long.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= CAP {
        return text.to_owned();
    }
    let end = (0..=CAP).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}
