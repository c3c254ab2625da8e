//! What went wrong while reading a value, and at which node.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

/// A fault that knows its node as soon as it has left the innermost one.
#[derive(Debug)]
pub(crate) struct Fault {
    site: Option<Site>,
    kind: Kind,
}

/// The node that is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// [`super::Node::id`].
    pub(crate) id: usize,
    /// Whether its key is wrong rather than its value.
    pub(crate) on_key: bool,
}

/// The kinds of fault that are told apart when they are reported.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A required key is not there.
    Missing {
        /// The key.
        field: &'static str,
        /// The struct that has it, once known.
        of: Option<&'static str>,
    },
    /// Everything else.
    Other(String),
}

impl Fault {
    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The node that is wrong.
    pub(crate) fn site(&self) -> Option<Site> {
        self.site
    }

    /// Notes the node whose value is wrong, unless one further inside was noted already.
    pub(crate) fn at(mut self, id: usize) -> Self {
        self.site.get_or_insert(Site { id, on_key: false });
        self
    }

    /// Notes the node whose key is wrong.
    pub(crate) fn at_key(mut self, id: usize) -> Self {
        self.site.get_or_insert(Site { id, on_key: true });
        self
    }

    /// Notes the struct that a key is missing in, when `id` is the node that lacks it.
    pub(crate) fn of(mut self, name: &'static str, id: usize) -> Self {
        if let Kind::Missing { of, .. } = &mut self.kind
            && self.site.is_some_and(|site| site.id == id)
        {
            of.get_or_insert(name);
        }
        self
    }

    /// The list of names that would have been right, and what stands there.
    pub(crate) fn not_one_of(found: Unexpected<'_>, names: &[&str]) -> Self {
        Self::other(format!("expected {}, found {}", one_of(names), name(found)))
    }

    fn other(message: String) -> Self {
        Self { site: None, kind: Kind::Other(message) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Missing { field, .. } => write!(f, "expected the key `{field}`"),
            Kind::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::other(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self { site: None, kind: Kind::Missing { field, of: None } }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = match nearest(field, expected) {
            Some(meant) => format!("expected a known key, found `{field}`; did you mean `{meant}`?"),
            None => format!("expected {}, found the unknown key `{field}`; remove it", one_of(expected)),
        };
        Self::other(message)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = nearest(variant, expected).map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        let message = format!("expected {}, found `{variant}`{hint}", one_of(expected));
        Self::other(message)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::other(format!("expected {}, found {}", wanted(expected), name(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::other(format!("expected {}, found {}", wanted(expected), name(found)))
    }
}

/// Serde's words for what it wanted, in YAML's terms.
fn wanted(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "a map" => "a mapping".to_owned(),
        "a sequence" => "a list".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        text if text.starts_with("struct ") => "a mapping".to_owned(),
        text if text.starts_with("a nonzero ") => "a whole number above 0".to_owned(),
        text => text.to_owned(),
    }
}

/// Serde's words for what it found, in YAML's terms.
fn name(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Str(text) => format!("`{text}`"),
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("`{value}`"),
        Unexpected::Signed(value) => format!("`{value}`"),
        Unexpected::Float(value) => format!("`{value}`"),
        other => other.to_string(),
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "no key at all".to_owned(),
        [only] => format!("`{only}`"),
        names => format!("one of {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// The known name that is one or two slips of the pen away.
fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = if written.chars().count() > 3 { 2 } else { 1 };
    known
        .iter()
        .map(|name| (strsim::levenshtein(written, name), *name))
        .filter(|(slips, _)| *slips <= allowed)
        .min()
        .map(|(_, n)| n)
}
