//! Permissions as numbers: names are compared once, at load; a call compares bits.

use std::collections::HashMap;
use std::sync::Arc;

use super::bits::Bits;

/// A permission of one [`Policy`](super::Policy): an index into its [`Permissions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermissionId(pub(super) u32);

/// The permission names that a policy knows, in the order in which it names them. Fixed at load.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Permissions {
    /// The identifier of `name`; a new one when it was not known.
    pub(super) fn intern(&mut self, name: &str) -> PermissionId {
        if let Some(id) = self.ids.get(name) {
            return PermissionId(*id);
        }
        let id = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        PermissionId(id)
    }

    /// The identifier of `name`; `None` when the policy does not name it.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<PermissionId> {
        self.ids.get(name).copied().map(PermissionId)
    }

    /// The name of a permission; `None` for an identifier of another policy.
    #[must_use]
    pub fn name(&self, id: PermissionId) -> Option<&Arc<str>> {
        self.names.get(id.0 as usize)
    }

    /// All names, in the order in which the policy names them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The permissions somebody holds. Asking it costs one load, however many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet {
    all: bool,
    bits: Bits,
}

impl PermissionSet {
    /// Every permission there is: the `*` of a role.
    #[must_use]
    pub fn all() -> Self {
        Self { all: true, bits: Bits::default() }
    }

    /// Whether `permission` is held.
    #[must_use]
    pub fn contains(&self, permission: PermissionId) -> bool {
        self.all || self.bits.contains(permission.0)
    }

    /// Whether nothing at all is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.all && self.bits.is_empty()
    }

    /// Whether everything is held, permissions that the policy does not name included.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The permissions held by name of the policy; with [`PermissionSet::is_all`] this lists none of them.
    pub fn iter(&self) -> impl Iterator<Item = PermissionId> + '_ {
        self.bits.iter().map(PermissionId)
    }

    pub(super) fn insert(&mut self, permission: PermissionId) {
        self.bits.insert(permission.0);
    }

    pub(super) fn union(&mut self, other: &Self) {
        self.all |= other.all;
        self.bits.union(&other.bits);
    }
}

#[cfg(test)]
mod tests;
