//! What a verified token says about its bearer, in the form that rules ask for.

use std::sync::Arc;

use crate::message::json::{Document, Value};

/// The claims of one verified token. Whoever makes it vouches that the token was verified.
#[derive(Clone, Debug)]
pub struct Claims {
    /// `iss`.
    pub issuer: Arc<str>,
    /// `sub`.
    pub subject: Arc<str>,
    /// The email, when the token has one.
    pub email: Option<Email>,
    /// `hd`, the hosted domain.
    pub hosted_domain: Option<Arc<str>>,
    /// `client_id`, else `azp`: the program that acts for the subject.
    pub client_id: Option<Arc<str>>,
    /// All claims as they came, for rules about a claim path. Its root is an object.
    pub document: Arc<Document>,
}

/// An email address and whether the issuer vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    /// The address as it came.
    pub address: Arc<str>,
    /// Whether the token says that the issuer verified it.
    pub verified: bool,
}

impl Claims {
    /// The email, when it is verified: an unverified one is the bearer's own assertion and identifies nobody.
    #[must_use]
    pub fn verified_email(&self) -> Option<&Arc<str>> {
        self.email.as_ref().filter(|email| email.verified).map(|email| &email.address)
    }

    /// The domain: the hosted domain when the token has one, else what follows the last `@` of the email. Only with a
    /// verified email.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        let email = self.verified_email()?;
        match &self.hosted_domain {
            Some(domain) => Some(domain),
            None => email.rsplit_once('@').map(|(_, domain)| domain),
        }
    }
}

/// Where a rule looks for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimPath {
    /// The path as written, which is also the name of the claim that wins.
    name: String,
    /// The steps between the dots; empty without a dot.
    steps: Vec<String>,
}

impl ClaimPath {
    pub(super) fn new(name: &str) -> Self {
        let steps = if name.contains('.') { name.split('.').map(str::to_owned).collect() } else { Vec::new() };
        Self { name: name.to_owned(), steps }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The claim: one with exactly this name (`https://acme.com/groups` has dots too), else the path is followed
    /// through objects by its dots.
    pub(super) fn find<'a>(&self, claims: &'a Document) -> Option<Value<'a>> {
        let root = claims.root();
        if let Some(claim) = root.get(&self.name) {
            return Some(claim);
        }
        let (first, rest) = self.steps.split_first()?;
        rest.iter().try_fold(root.get(first)?, |value, step| value.get(step))
    }
}

/// `text` for a comparison without case, as emails and domains are compared.
///
/// ASCII letters fold to ASCII and others to others, never across: a letter such as the Kelvin sign, whose lower case
/// is the plain `k`, would let somebody own an address that only looks like another's.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let crosses = !letter.is_ascii() && letter.to_lowercase().any(|lower| lower.is_ascii());
            let folded = if crosses { None } else { Some(letter.to_lowercase()) };
            let kept = crosses.then_some(letter);
            folded.into_iter().flatten().chain(kept)
        })
        .collect()
}

#[cfg(test)]
mod tests;
