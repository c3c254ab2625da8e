//! OAuth scopes as numbers: which a call needs, which a token holds, which are missing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::bits::Bits;
use super::fault::{Fault, Part, Segment};

/// A set of scopes of one [`Scopes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet(Bits);

impl ScopeSet {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all scopes of `other`.
    pub fn union(&mut self, other: &Self) {
        self.0.union(&other.0);
    }
}

/// Every scope that matters to a server, in configuration order: the required ones, those of capabilities, and those
/// that appear only in the hierarchy. A scope that is none of these makes no difference and is not kept.
#[derive(Clone, Debug, Default)]
pub struct Scopes {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
    /// By scope: itself and all it implies, directly or through others.
    closures: Vec<Bits>,
    required: ScopeSet,
    /// How many of `names` something asks for; the rest is only in the hierarchy.
    asked_for: usize,
}

impl Scopes {
    /// Compiles a server's scopes: `required` are those every call needs, `capabilities` those of single capabilities
    /// (label as written, scopes), `implies` leads from a broader scope to those it includes.
    ///
    /// # Errors
    /// All faults: a scope outside the grammar of RFC 6749 §3.3, an empty list, capability scopes although nothing is
    /// required. (Without required scopes the server's metadata names none, so no client could ask for the others.)
    pub fn compile(
        required: &[String],
        capabilities: &[(String, Vec<String>)],
        implies: &BTreeMap<String, Vec<String>>,
    ) -> Result<Self, Vec<Fault>> {
        let faults = faults(required, capabilities, implies);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut scopes = Self::default();
        scopes.required = required.iter().map(|scope| scopes.intern(scope)).collect();
        for scope in capabilities.iter().flat_map(|(_, needed)| needed) {
            scopes.intern(scope);
        }
        scopes.asked_for = scopes.names.len();
        let mut direct: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (broad, narrow) in implies {
            let broad = scopes.intern(broad);
            let narrow = narrow.iter().map(|scope| scopes.intern(scope)).collect();
            direct.insert(broad, narrow);
        }
        scopes.closures = (0..).take(scopes.names.len()).map(|scope| closure(scope, &direct)).collect();
        Ok(scopes)
    }

    fn intern(&mut self, scope: &str) -> u32 {
        if let Some(id) = self.ids.get(scope) {
            return *id;
        }
        let id = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = scope.into();
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// The scopes that every call needs.
    #[must_use]
    pub fn required(&self) -> &ScopeSet {
        &self.required
    }

    /// The set of `names`, without what they imply: what a capability needs. Names nobody configured are left out.
    #[must_use]
    pub fn set<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> ScopeSet {
        names.into_iter().filter_map(|name| self.ids.get(name).copied()).collect()
    }

    /// What a token with the scopes `names` holds: they and all they imply, through any number of steps.
    #[must_use]
    pub fn held<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> ScopeSet {
        let mut held = Bits::default();
        for id in names.into_iter().filter_map(|name| self.ids.get(name)) {
            if let Some(closure) = self.closures.get(*id as usize) {
                held.union(closure);
            }
        }
        ScopeSet(held)
    }

    /// What of `needed` is not in `held`; empty means that the call has its scopes.
    #[must_use]
    pub fn missing(&self, needed: &ScopeSet, held: &ScopeSet) -> ScopeSet {
        ScopeSet(needed.0.difference(&held.0))
    }

    /// The names of a set in configuration order, as a challenge lists them.
    pub fn names<'a>(&'a self, set: &'a ScopeSet) -> impl Iterator<Item = &'a str> {
        set.0.iter().filter_map(|id| self.names.get(id as usize)).map(AsRef::as_ref)
    }

    /// Every scope that some call needs, in configuration order: what the server's metadata may advertise.
    pub fn asked_for(&self) -> impl Iterator<Item = &str> {
        self.names.iter().take(self.asked_for).map(AsRef::as_ref)
    }
}

impl FromIterator<u32> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

/// Whether `token` is a scope-token of RFC 6749 §3.3: `1*( %x21 / %x23-5B / %x5D-7E )`.
#[must_use]
pub fn is_scope_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
}

/// Everything reachable from `scope`, itself included. Cycles are fine: two scopes that imply each other are the same.
fn closure(scope: u32, direct: &BTreeMap<u32, Vec<u32>>) -> Bits {
    let mut reached = Bits::default();
    let mut open = vec![scope];
    while let Some(scope) = open.pop() {
        if !reached.contains(scope) {
            reached.insert(scope);
            open.extend(direct.get(&scope).into_iter().flatten());
        }
    }
    reached
}

fn faults(
    required: &[String],
    capabilities: &[(String, Vec<String>)],
    implies: &BTreeMap<String, Vec<String>>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    check_tokens(Part::RequiredScopes, &[], required, &mut faults);
    for (label, scopes) in capabilities {
        check_list(Part::CapabilityScopes, label, scopes, &mut faults);
    }
    if required.is_empty() && !capabilities.is_empty() {
        let message = "expected scopes that every call of this server needs (required_scopes) beside capability_scopes, \
                       found none; add at least one, or remove capability_scopes";
        faults.push(Fault::new(Part::CapabilityScopes, [], message));
    }
    for (broad, narrow) in implies {
        check_token(Part::Implies, vec![broad.as_str().into()], broad, &mut faults);
        check_list(Part::Implies, broad, narrow, &mut faults);
    }
    faults
}

fn check_list(part: Part, key: &str, scopes: &[String], faults: &mut Vec<Fault>) {
    let path = [Segment::from(key)];
    if scopes.is_empty() {
        let message =
            format!("expected at least one scope for '{key}', found an empty list; name one or remove the key");
        faults.push(Fault::new(part, path, message));
    } else {
        check_tokens(part, &path, scopes, faults);
    }
}

fn check_tokens(part: Part, path: &[Segment], scopes: &[String], faults: &mut Vec<Fault>) {
    for (index, scope) in scopes.iter().enumerate() {
        let path = path.iter().cloned().chain([Segment::Index(index)]).collect();
        check_token(part, path, scope, faults);
    }
}

fn check_token(part: Part, path: Vec<Segment>, scope: &str, faults: &mut Vec<Fault>) {
    if !is_scope_token(scope) {
        let message = format!(
            "expected a scope (one or more visible ASCII characters except '\"' and '\\'), found {scope:?}; write several \
             scopes as a list"
        );
        faults.push(Fault::new(part, path, message));
    }
}

#[cfg(test)]
mod tests;
