//! The compiled policy and its one evaluator: which rules match a caller, and what that gives.

mod compile;
mod index;

use std::fmt;
use std::sync::Arc;

use super::bits::Bits;
use super::claims::Claims;
use super::fault::{Fault, list};
use super::permission::{PermissionId, PermissionSet, Permissions};
use super::principal::Principal;
use super::source::PolicySource;
use index::Index;

/// A policy that loaded: every rule names roles that exist, every role grants permissions that exist.
#[derive(Clone, Debug)]
pub struct Policy {
    permissions: Permissions,
    roles: Vec<Role>,
    rules: Vec<Rule>,
    index: Index,
}

/// A role and what it grants.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: Arc<str>,
    pub(super) grants: PermissionSet,
}

/// A rule without its conditions, which are in the [`Index`].
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Indices into `Policy::roles`, each once.
    pub(super) roles: Vec<usize>,
    pub(super) deny: bool,
    /// Whom it matches, for people.
    pub(super) who: Arc<str>,
}

/// Why a caller has the roles they have. Made by the evaluator that decides, so it cannot tell another story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rules that match, in order.
    pub matched: Vec<MatchedRule>,
    /// The index of the first matching rule that denies; with it the caller has nothing.
    pub denied_by: Option<usize>,
}

/// One rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedRule {
    /// Its index in the policy's `rules`, from 0.
    pub index: usize,
    /// The roles it gives.
    pub roles: Vec<Arc<str>>,
    /// Whether it denies.
    pub deny: bool,
    /// Whom it matches, for people.
    pub summary: Arc<str>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.matched.is_empty() {
            return f.write_str("no rule matches");
        }
        for (at, rule) in self.matched.iter().enumerate() {
            let roles = list(rule.roles.iter().map(AsRef::as_ref));
            let what = if rule.deny { "deny".to_owned() } else { format!("role {roles}") };
            let line_end = if at == 0 { "" } else { "\n" };
            write!(f, "{line_end}rules[{}]: {} -> {what}", rule.index, rule.summary)?;
        }
        match self.denied_by {
            Some(index) => write!(f, "\ndenied by rules[{index}]"),
            None => Ok(()),
        }
    }
}

/// What the evaluator found: the matching rules and the first of them that denies.
struct Evaluation {
    matched: Bits,
    denied_by: Option<usize>,
}

impl Policy {
    /// Checks a policy document and makes it ready to be asked.
    ///
    /// # Errors
    /// All faults at once, each with its path in the document.
    pub fn compile(source: &PolicySource) -> Result<Self, Vec<Fault>> {
        compile::policy(source)
    }

    /// Who the bearer of verified claims is and what the policy gives them: the union over all matching rules, or
    /// nothing when one of them denies. Linear in the size of the claims and the number of rules; callers keep the
    /// result with the token.
    #[must_use]
    pub fn principal(&self, claims: &Claims) -> Principal {
        let evaluation = self.evaluate(claims);
        let (roles, permissions) = self.granted(&evaluation);
        let email = claims.verified_email().cloned();
        let name = email.clone().unwrap_or_else(|| format!("{}#{}", claims.issuer, claims.subject).into());
        Principal {
            name,
            issuer: Arc::clone(&claims.issuer),
            subject: Arc::clone(&claims.subject),
            email,
            domain: claims.domain().map(Arc::from),
            roles,
            permissions,
            rules: evaluation.matched.iter().collect(),
        }
    }

    /// Which rules match the bearer of verified claims, and which one denies.
    #[must_use]
    pub fn explain(&self, claims: &Claims) -> Explanation {
        let Evaluation { matched, denied_by } = self.evaluate(claims);
        let matched = self
            .among(&matched)
            .map(|(index, rule)| MatchedRule {
                index,
                roles: self.names(rule).collect(),
                deny: rule.deny,
                summary: Arc::clone(&rule.who),
            })
            .collect();
        Explanation { matched, denied_by }
    }

    /// The permissions that the policy names.
    #[must_use]
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// The roles by name, each with what it grants.
    pub fn roles(&self) -> impl Iterator<Item = (&Arc<str>, &PermissionSet)> {
        self.roles.iter().map(|role| (&role.name, &role.grants))
    }

    /// Names of the roles that grant `permission`.
    pub(super) fn roles_granting(&self, permission: PermissionId) -> impl Iterator<Item = &str> {
        self.roles.iter().filter(move |role| role.grants.contains(permission)).map(|role| role.name.as_ref())
    }

    /// The rules, each with whom it matches, the names of its roles and what they grant together, for the matrix.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&Arc<str>, Vec<Arc<str>>, bool, PermissionSet)> {
        self.rules.iter().map(|rule| {
            let mut grants = PermissionSet::default();
            rule.roles.iter().filter_map(|role| self.roles.get(*role)).for_each(|role| grants.union(&role.grants));
            (&rule.who, self.names(rule).collect(), rule.deny, grants)
        })
    }

    /// The one evaluator.
    fn evaluate(&self, claims: &Claims) -> Evaluation {
        let matched = self.index.matching(claims);
        let denied_by = self.among(&matched).find(|(_, rule)| rule.deny).map(|(index, _)| index);
        Evaluation { matched, denied_by }
    }

    fn granted(&self, evaluation: &Evaluation) -> (Vec<Arc<str>>, PermissionSet) {
        let (mut names, mut permissions, mut seen) =
            (Vec::new(), PermissionSet::default(), vec![false; self.roles.len()]);
        if evaluation.denied_by.is_some() {
            return (names, permissions);
        }
        for role in self.among(&evaluation.matched).flat_map(|(_, rule)| &rule.roles) {
            let (Some(seen), Some(role)) = (seen.get_mut(*role), self.roles.get(*role)) else { continue };
            if !std::mem::replace(seen, true) {
                names.push(Arc::clone(&role.name));
                permissions.union(&role.grants);
            }
        }
        (names, permissions)
    }

    /// The rules of a set with their indices, in order.
    fn among<'a>(&'a self, matched: &'a Bits) -> impl Iterator<Item = (usize, &'a Rule)> {
        matched.iter().filter_map(|index| {
            let index = index as usize;
            Some((index, self.rules.get(index)?))
        })
    }

    fn names(&self, rule: &Rule) -> impl Iterator<Item = Arc<str>> {
        rule.roles.iter().filter_map(|role| self.roles.get(*role)).map(|role| Arc::clone(&role.name))
    }
}

#[cfg(test)]
mod tests;
