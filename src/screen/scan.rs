//! Looks through every string and key of a value, decoded, for text that should not be in an answer.
//!
//! Nothing is skipped. What the protocol calls binary (`data` of images and audio, `blob` of resources) is base64: it
//! has no character that any built-in detector looks for, so looking costs one pass and no false alarm, and a string
//! does not escape by calling itself a blob. It is not decoded: bytes of an image are no text to a model.

use regex::RegexSet;

use crate::message::json::Value;

use super::config::{Action, DetectorsSource, TooLarge};
use super::{addressed, invisible};

#[cfg(test)]
mod tests;

/// What is looked for, ready to look.
#[derive(Debug)]
pub struct Detectors {
    invisible: bool,
    addressed: bool,
    patterns: Option<RegexSet>,
}

/// Which kinds of text were found. The text itself is never reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Invisible characters.
    pub invisible: bool,
    /// Text addressed to the model, by the built-in list or by a pattern of the operator.
    pub addressed: bool,
}

impl Found {
    /// Whether there is anything.
    #[must_use]
    pub fn any(self) -> bool {
        self.invisible || self.addressed
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { invisible: self.invisible || other.invisible, addressed: self.addressed || other.addressed }
    }

    /// What was found, in words; empty for nothing.
    #[must_use]
    pub fn what(self) -> &'static str {
        match (self.addressed, self.invisible) {
            (true, true) => "text addressed to the model, and invisible characters",
            (true, false) => "text addressed to the model",
            (false, true) => "invisible characters, which can hide text from people",
            (false, false) => "",
        }
    }
}

impl Detectors {
    /// What the configuration asks for.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn compile(source: &DetectorsSource) -> Result<Self, TooLarge> {
        Ok(Self {
            invisible: source.invisible == Action::Notice,
            addressed: source.addressed_to_model == Action::Notice,
            patterns: source.compiled_patterns()?,
        })
    }

    /// Looks through `value`: every string and every key in it. Linear in the document's text, no allocation.
    ///
    /// The built-in detectors look at the whole message at once first, as it came and then the decoded strings that had
    /// escapes; one string after the other only where that found something. So an ordinary answer costs its bytes and not
    /// the number of its strings.
    #[must_use]
    pub fn scan(&self, value: Value<'_>) -> Found {
        let document = value.document();
        let texts = || document.beside_unescaped().chain([document.unescaped()]);
        let invisible = self.invisible && texts().any(invisible::may_contain);
        let addressed = self.addressed && texts().any(addressed::may_contain);
        let mut found = Found::default();
        if !invisible && !addressed && self.patterns.is_none() {
            return found;
        }
        let most = Found { invisible, addressed: addressed || self.patterns.is_some() };
        for text in value.strings() {
            found.invisible = found.invisible || invisible && invisible::contains(text);
            found.addressed = found.addressed || addressed && addressed::contains(text) || self.matches(text);
            if found == most {
                break;
            }
        }
        found
    }

    fn matches(&self, text: &str) -> bool {
        self.patterns.as_ref().is_some_and(|patterns| patterns.is_match(text))
    }
}
