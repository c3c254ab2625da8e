//! The `WWW-Authenticate` value that tells a client how to get a token that works.
//!
//! Always with `resource_metadata` (RFC 9728 §5.1): clients that do not see it never start OAuth. Always with `scope`
//! where scopes are known: clients that do not see it ask for everything the authorization server has. Built from the
//! configuration only, never from the request.

use std::fmt::Write as _;

/// The `error` attribute of a challenge (RFC 6750 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeError {
    /// The token is not good: HTTP 401.
    InvalidToken,
    /// The token lacks a scope: HTTP 403.
    InsufficientScope,
}

impl ChallengeError {
    /// The code as RFC 6750 spells it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
        }
    }
}

/// One challenge, to be rendered with [`Challenge::header_value`].
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// What is wrong and in words; `None` when no token was presented (RFC 6750 §3.1: then no error information).
    pub error: Option<(ChallengeError, &'a str)>,
    /// Every scope that the operation needs, in the order of the configuration.
    pub scopes: &'a [&'a str],
    /// URL of the protected-resource metadata, see [`super::metadata::Metadata::url`].
    pub resource_metadata: &'a str,
}

impl Challenge<'_> {
    /// The header's value: `Bearer error="…", error_description="…", scope="…", resource_metadata="…"`.
    ///
    /// Visible ASCII only. What RFC 6750 §3 does not allow inside an attribute is replaced, so that no text can end
    /// its quotes; a scope outside the grammar is left out.
    #[must_use]
    pub fn header_value(&self) -> String {
        let mut value = String::with_capacity(256);
        value.push_str("Bearer");
        let mut separator = ' ';
        let mut attribute = |name: &str, text: &mut dyn Iterator<Item = char>| {
            let _ = write!(value, "{}{name}=\"", if separator == ' ' { " " } else { ", " });
            value.extend(text);
            value.push('"');
            separator = ',';
        };
        if let Some((error, description)) = self.error {
            attribute("error", &mut error.code().chars());
            attribute("error_description", &mut description.chars().map(describable));
        }
        let scopes = self.scopes.iter().copied().filter(|scope| is_scope(scope));
        let mut scopes = scopes
            .enumerate()
            .flat_map(|(n, scope)| (n > 0).then_some(' ').into_iter().chain(scope.chars()))
            .peekable();
        if scopes.peek().is_some() {
            attribute("scope", &mut scopes);
        }
        attribute("resource_metadata", &mut self.resource_metadata.chars().filter(|c| is_plain(*c) && *c != ' '));
        value
    }
}

/// `%x20-21 / %x23-5B / %x5D-7E`
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') && !matches!(c, '"' | '\\')
}

fn describable(c: char) -> char {
    match c {
        '"' => '\'',
        c if is_plain(c) => c,
        _ => '?',
    }
}

/// RFC 6749 §3.3, `scope-token`.
fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.chars().all(|c| is_plain(c) && c != ' ')
}

#[cfg(test)]
mod tests;
