//! Who is calling, and what the policy gives them.

use std::fmt;
use std::sync::Arc;

use super::permission::PermissionSet;

/// The caller as the policy sees them. Made once per token and shared by its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `iss` of the token.
    pub issuer: Arc<str>,
    /// `sub` of the token.
    pub subject: Arc<str>,
    /// How messages, audit and metadata name the caller: by email, else `issuer#subject`. Made once, shared by all calls.
    pub name: Arc<str>,
    /// The email, only when verified.
    pub email: Option<Arc<str>>,
    /// The domain, only with a verified email.
    pub domain: Option<Arc<str>>,
    /// Names of the roles, in the order of the rules that gave them, each once.
    pub roles: Vec<Arc<str>>,
    /// What those roles grant together. Empty when a rule denied.
    pub permissions: PermissionSet,
    /// The rules that matched, by their position in the policy, in order; where one of them denies, that one too.
    pub rules: Arc<[u32]>,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
