//! Labels: how configuration names a capability of a server (ladder §1).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What a capability is. Resource templates are resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reached by `tools/call`.
    Tool,
    /// Reached by `prompts/get`.
    Prompt,
    /// Reached by `resources/read`.
    Resource,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// The word that stands in front of the colon of a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A typed capability name. Two texts that mean the same capability are equal labels: `search` is `tool:search`.
///
/// A text whose first word is a kind is typed by it, once: `prompt:x` is the prompt `x`, and the tool that is really
/// called `prompt:x` is written `tool:prompt:x`. Names compare byte for byte, white space included.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    kind: Kind,
    name: Arc<str>,
}

/// A label without a name, such as `tool:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a capability such as tool:search, prompt:triage or resource:case, found no name")]
pub struct EmptyName;

impl Label {
    /// The label of a capability as the server calls it.
    #[must_use]
    pub fn new(kind: Kind, name: &str) -> Self {
        Self { kind, name: name.into() }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the server calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for Label {
    type Err = EmptyName;

    fn from_str(text: &str) -> Result<Self, EmptyName> {
        let typed = text.split_once(':').and_then(|(word, name)| {
            let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == word)?;
            Some((kind, name))
        });
        let (kind, name) = typed.unwrap_or((Kind::Tool, text));
        if name.is_empty() { Err(EmptyName) } else { Ok(Self::new(kind, name)) }
    }
}

/// The canonical text: always typed.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests;
