//! What each capability of a server costs, and the look-ups a call makes: by tool or prompt name, by resource URI.

mod reconcile;

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::capability::{Kind, Label};
use super::fault::Fault;
use super::permission::PermissionId;
use super::rules::Policy;
use super::scope::{ScopeSet, Scopes};
use super::template::TemplateSet;
use super::uri::{self, NotNormal};

/// One entry of the record's `capabilities`, as far as the policy is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceEntry {
    /// The label as written, which is also how faults find the entry.
    pub label: String,
    /// The permission it costs.
    pub permission: String,
    /// The URI or URI template of a resource.
    pub uri: Option<String>,
}

/// A priced capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// What it is and what the server calls it.
    pub label: Label,
    /// The canonical label, ready for messages and audit.
    pub text: Arc<str>,
    /// The permission it costs.
    pub permission: PermissionId,
    /// That permission's name.
    pub permission_name: Arc<str>,
    /// The scopes it needs besides those that every call needs.
    pub scopes: ScopeSet,
    /// The URI or URI template of a resource; always there for one, never for another kind.
    pub uri: Option<Arc<str>>,
    /// Its place among the entries that [`Prices`] were built from.
    pub index: u32,
}

/// All capabilities that cover one URI, in entry order.
pub type Covering<'a> = SmallVec<[&'a Capability; 4]>;

/// The priced capabilities of one server. What is not in here is unpriced and never runs.
#[derive(Debug)]
pub struct Prices {
    capabilities: Vec<Capability>,
    tools: HashMap<Box<str>, u32>,
    prompts: HashMap<Box<str>, u32>,
    resources: HashMap<Box<str>, u32>,
    /// The URIs of all resources.
    uris: TemplateSet,
    /// By index in `uris`: index into `capabilities`.
    uri_owners: Vec<u32>,
}

/// What came of reconciling prices with policy and scopes.
#[derive(Debug)]
pub struct Reconciled {
    /// The prices; only without faults, and only when policy and scopes were there.
    pub prices: Option<Prices>,
    /// Why the configuration does not load.
    pub faults: Vec<Fault>,
    /// What looks like a mistake and loads.
    pub warnings: Vec<Fault>,
}

impl Prices {
    /// Reconciles the record's entries and the server's `capability_scopes` (label as written, scopes) with the policy
    /// and the scopes they were compiled with (authz-semantics: reconciliation at load).
    ///
    /// `policy` and `scopes` are `None` when they did not load; what can be checked without them still is, so that the
    /// operator sees all faults at once.
    #[must_use]
    pub fn reconcile(
        entries: &[PriceEntry],
        capability_scopes: &[(String, Vec<String>)],
        policy: Option<&Policy>,
        scopes: Option<&Scopes>,
    ) -> Reconciled {
        reconcile::prices(entries, capability_scopes, policy, scopes)
    }

    /// The tool called `name`; `None` when it is unpriced.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Capability> {
        self.at(*self.tools.get(name)?)
    }

    /// The prompt called `name`; `None` when it is unpriced.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&Capability> {
        self.at(*self.prompts.get(name)?)
    }

    /// The resource or resource template called `name`, as a listing names it; `None` when it is unpriced. Reads are
    /// priced by URI: [`Prices::covering`].
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&Capability> {
        self.at(*self.resources.get(name)?)
    }

    /// The capability under a label; `None` when it is unpriced.
    #[must_use]
    pub fn get(&self, label: &Label) -> Option<&Capability> {
        match label.kind() {
            Kind::Tool => self.tool(label.name()),
            Kind::Prompt => self.prompt(label.name()),
            Kind::Resource => self.resource(label.name()),
        }
    }

    /// Every resource that covers `uri` (ladder §4): each one's permission and scopes are needed. Empty when it is
    /// unpriced. A URI that still holds `{…}` is covered by the identical template only. Linear in the length of the
    /// URI, whatever the number of resources.
    ///
    /// # Errors
    /// The URI is not in normal form, so that it may mean another one to the upstream.
    pub fn covering(&self, uri: &str) -> Result<Covering<'_>, NotNormal> {
        uri::normal_form(uri)?;
        let owners = self.uris.covering(uri);
        Ok(owners.iter().filter_map(|at| self.at(*self.uri_owners.get(*at as usize)?)).collect())
    }

    /// All priced capabilities, in entry order.
    #[must_use]
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn at(&self, index: u32) -> Option<&Capability> {
        self.capabilities.get(index as usize)
    }
}

#[cfg(test)]
mod tests;
