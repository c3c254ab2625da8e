//! RFC 6570 URI templates read backwards: not "expand these values" but "is this URI an expansion of that template".
//!
//! | expression | matches |
//! |---|---|
//! | `{v}` | a segment: one or more characters other than `/ , ? #` |
//! | `{v*}` | segments separated by commas |
//! | `{a,b}` | a segment each, separated by commas, in order |
//! | `{+v}`, `{#v}` | one or more of any character; `{#v}` with its `#` |
//! | `{.v}`, `{/v}` | `.` or `/` and a segment; with `*` one or more times |
//! | `{;a,b}`, `{?a,b}`, `{&a,b}` | the named parameters, each at most once (with `*`: any number of times), in any order, any of them left out; a value is a segment without the separator |
//!
//! `{v:3}` limits the segment to three characters. A percent-encoded octet is one character. The match is of the whole
//! URI. A template without an expression is a URI, and matches itself.

mod automaton;
mod parse;
mod set;

pub use set::TemplateSet;

/// A template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

/// A stretch of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Stands for itself.
    Literal(String),
    /// `{…}`: an operator and at least one variable.
    Expression(Operator, Vec<Variable>),
}

/// The character that opens an expression (RFC 6570 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `{v}`
    Simple,
    /// `{+v}`
    Reserved,
    /// `{#v}`
    Fragment,
    /// `{.v}`
    Label,
    /// `{/v}`
    Path,
    /// `{;v}`
    PathParameter,
    /// `{?v}`
    Query,
    /// `{&v}`
    QueryContinuation,
}

/// One variable of an expression (RFC 6570 §2.3, §2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    name: String,
    modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    None,
    /// `*`
    Explode,
    /// `:n`, 1 to 9999.
    Prefix(u16),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// `{` without `}`.
    #[error(
        "expected '}}' to close the '{{' at character {at} of '{text}'; close it, or percent-encode a brace that is meant as text"
    )]
    Unclosed {
        /// The template.
        text: String,
        /// Position of the `{` in characters, from 1.
        at: usize,
    },
    /// `}` without `{`, or `{` inside an expression.
    #[error("expected braces in pairs, found a stray one at character {at} of '{text}'; pair it, or percent-encode it")]
    Stray {
        /// The template.
        text: String,
        /// Position of the brace in characters, from 1.
        at: usize,
    },
    /// `{}`, `{?}`, `{a,}`.
    #[error("expected a variable name in '{{{expression}}}', found none; name it")]
    NoName {
        /// What stands between the braces.
        expression: String,
    },
    /// An operator that RFC 6570 reserves and nobody defined.
    #[error(
        "expected one of the operators + # . / ; ? & or a variable name in '{{{expression}}}', found '{found}'; correct it"
    )]
    Operator {
        /// What stands between the braces.
        expression: String,
        /// Its first character.
        found: char,
    },
    /// A variable that is not a name with an optional modifier.
    #[error(
        "expected a variable name of letters, digits, '_', '-' and '.', then nothing, '*' or ':1' to ':9999', found \
         '{variable}' in '{{{expression}}}'; correct it"
    )]
    Variable {
        /// What stands between the braces.
        expression: String,
        /// The variable as written.
        variable: String,
    },
    /// A name that an expression of named parameters holds twice.
    #[error("expected each parameter once, found '{name}' twice in '{{{expression}}}'; remove one")]
    Repeated {
        /// What stands between the braces.
        expression: String,
        /// The name.
        name: String,
    },
    /// More named parameters than can be matched in any order with bounded memory.
    #[error(
        "expected at most {limit} named parameters in one expression, found more in '{{{expression}}}'; split it in two"
    )]
    TooMany {
        /// What stands between the braces.
        expression: String,
        /// How many there may be.
        limit: usize,
    },
    /// The templates together would need too much memory.
    #[error(
        "expected templates that fit {limit} bytes once compiled, '{text}' is one too many; use shorter prefix limits (':n') or fewer named parameters"
    )]
    TooLarge {
        /// The first template that does not fit.
        text: String,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// The first fault in reading order.
    pub fn parse(text: &str) -> Result<Self, TemplateFault> {
        Ok(Self { text: text.to_owned(), parts: parse::parts(text)? })
    }

    /// The template as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has no expression, so that it is a URI and matches only itself.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Expression(..)))
    }
}

impl Operator {
    /// The operator that `first` opens an expression with.
    fn of(first: char) -> Option<Self> {
        Some(match first {
            '+' => Self::Reserved,
            '#' => Self::Fragment,
            '.' => Self::Label,
            '/' => Self::Path,
            ';' => Self::PathParameter,
            '?' => Self::Query,
            '&' => Self::QueryContinuation,
            _ => return None,
        })
    }

    /// What an expansion begins with, and what stands between its values (RFC 6570 appendix A).
    fn first_and_separator(self) -> (&'static str, &'static str) {
        match self {
            Self::Simple | Self::Reserved => ("", ","),
            Self::Fragment => ("#", ","),
            Self::Label => (".", "."),
            Self::Path => ("/", "/"),
            Self::PathParameter => (";", ";"),
            Self::Query => ("?", "&"),
            Self::QueryContinuation => ("&", "&"),
        }
    }

    /// Whether values carry their names.
    fn is_named(self) -> bool {
        matches!(self, Self::PathParameter | Self::Query | Self::QueryContinuation)
    }

    /// Whether a value may hold every character.
    fn is_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

#[cfg(test)]
mod tests;
