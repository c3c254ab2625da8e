//! Prices against policy and scopes, at load: what each says about the other must hold, or the operator hears of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Capability, PriceEntry, Prices, Reconciled};
use crate::policy::capability::{Kind, Label};
use crate::policy::fault::{Fault, Part, Segment, list};
use crate::policy::permission::PermissionId;
use crate::policy::rules::Policy;
use crate::policy::scope::{ScopeSet, Scopes};
use crate::policy::template::{Template, TemplateSet};
use crate::policy::uri;

/// What is known while entries are gone through.
struct Reconciler<'a> {
    policy: Option<&'a Policy>,
    scopes: Option<&'a Scopes>,
    faults: Vec<Fault>,
    /// By label: the text it was written with first.
    seen: HashMap<Label, &'a str>,
    /// Identifiers of priced permissions that the policy does not name: only `*` grants them.
    unnamed: HashMap<&'a str, u32>,
    capabilities: Vec<Capability>,
    templates: Vec<Template>,
    /// By template: the capability it belongs to.
    owners: Vec<u32>,
}

pub(super) fn prices(
    entries: &[PriceEntry],
    capability_scopes: &[(String, Vec<String>)],
    policy: Option<&Policy>,
    scopes: Option<&Scopes>,
) -> Reconciled {
    let mut reconciler = Reconciler {
        policy,
        scopes,
        faults: Vec::new(),
        seen: HashMap::new(),
        unnamed: HashMap::new(),
        capabilities: Vec::with_capacity(entries.len()),
        templates: Vec::new(),
        owners: Vec::new(),
    };
    let labelled: Vec<_> = entries.iter().filter_map(|entry| Some((reconciler.label(entry)?, entry))).collect();
    let needed = reconciler.scopes_by_label(capability_scopes);
    for (label, entry) in labelled {
        reconciler.entry(label, entry, &needed);
    }
    let uris = match TemplateSet::build(&reconciler.templates) {
        Ok(uris) => Some(uris),
        Err((index, fault)) => {
            let owner = reconciler.owners.get(index).and_then(|owner| reconciler.capabilities.get(*owner as usize));
            let written = owner.and_then(|owner| reconciler.seen.get(&owner.label).copied()).unwrap_or_default();
            let path = [written.into(), "uri".into()];
            reconciler.faults.push(Fault::new(Part::Capabilities, path, fault.to_string()));
            None
        }
    };
    let warnings = policy.map(|policy| unpriced_permissions(policy, entries)).unwrap_or_default();
    let complete = policy.is_some() && scopes.is_some() && reconciler.faults.is_empty();
    let Reconciler { faults, capabilities, owners, .. } = reconciler;
    let prices = uris.filter(|_| complete).map(|uris| index(capabilities, uris, owners));
    Reconciled { prices, faults, warnings }
}

impl<'a> Reconciler<'a> {
    fn fault(&mut self, written: &str, key: Option<&str>, message: String) {
        let path = [Some(Segment::from(written)), key.map(Segment::from)];
        self.faults.push(Fault::new(Part::Capabilities, path.into_iter().flatten(), message));
    }

    /// The label of an entry; `None` when it is none, or is that of an entry before.
    fn label(&mut self, entry: &'a PriceEntry) -> Option<Label> {
        let label: Label = match entry.label.parse() {
            Ok(label) => label,
            Err(error) => {
                self.fault(&entry.label, None, format!("{error} in '{}'; name it", entry.label));
                return None;
            }
        };
        if let Some(before) = self.seen.get(&label) {
            let message = format!("expected one entry for {label}, found '{before}' and '{}'; remove one", entry.label);
            self.fault(&entry.label, None, message);
            return None;
        }
        self.seen.insert(label.clone(), &entry.label);
        Some(label)
    }

    /// The scopes of single capabilities. Every key must name a priced one: a scope that guards nothing is a mistake.
    fn scopes_by_label(&mut self, written: &'a [(String, Vec<String>)]) -> BTreeMap<Label, ScopeSet> {
        let mut sets = BTreeMap::new();
        let mut keys: HashMap<Label, &str> = HashMap::new();
        for (key, scopes) in written {
            let message = match key.parse::<Label>() {
                Err(error) => format!("{error} in '{key}'; name it"),
                Ok(label) if !self.seen.contains_key(&label) => format!(
                    "expected a priced capability, found {label}, which the record does not price; correct the label or \
                     remove its scopes"
                ),
                Ok(label) => {
                    let Some(before) = keys.insert(label.clone(), key) else {
                        let set = self.scopes.map(|known| known.set(scopes.iter().map(String::as_str)));
                        sets.insert(label, set.unwrap_or_default());
                        continue;
                    };
                    format!("expected one entry for {label}, found '{before}' and '{key}'; remove one")
                }
            };
            self.faults.push(Fault::new(Part::CapabilityScopes, [key.as_str().into()], message));
        }
        sets
    }

    fn entry(&mut self, label: Label, entry: &'a PriceEntry, needed: &BTreeMap<Label, ScopeSet>) {
        let permission = self.permission(&label, entry);
        let uri = self.uri(&label, entry);
        let scopes = needed.get(&label).cloned().unwrap_or_default();
        let index = u32::try_from(self.capabilities.len()).unwrap_or(u32::MAX);
        if let Some(template) = uri {
            self.templates.push(template);
            self.owners.push(index);
        }
        self.capabilities.push(Capability {
            text: label.to_string().into(),
            label,
            permission,
            permission_name: Arc::from(entry.permission.as_str()),
            scopes,
            uri: entry.uri.as_deref().map(Arc::from),
            index,
        });
    }

    /// The permission an entry costs. A price that nobody can pay is a mistake in one of the two files.
    fn permission(&mut self, label: &Label, entry: &'a PriceEntry) -> PermissionId {
        let name = entry.permission.as_str();
        let known = self.policy.and_then(|policy| policy.permissions().id(name));
        let first_free = self.policy.map_or(0, |policy| policy.permissions().len());
        let id = known.unwrap_or_else(|| {
            let next = u32::try_from(first_free.saturating_add(self.unnamed.len())).unwrap_or(u32::MAX);
            PermissionId(*self.unnamed.entry(name).or_insert(next))
        });
        let problem = if name.is_empty() || name == "*" {
            Some(format!("expected the permission that {label} costs, found '{name}'; name one that a role grants"))
        } else if self.policy.is_some_and(|policy| policy.roles_granting(id).next().is_none()) {
            Some(format!(
                "expected a permission that some role grants, found '{name}' as the price of {label}, which no role grants; \
                 grant it or correct it"
            ))
        } else {
            None
        };
        if let Some(message) = problem {
            self.fault(&entry.label, Some("permission"), message);
        }
        id
    }

    /// The URI of a resource as a template; `None` for other kinds and after a fault.
    fn uri(&mut self, label: &Label, entry: &PriceEntry) -> Option<Template> {
        let (key, message) = match (&entry.uri, label.kind()) {
            (None, Kind::Resource) => (
                None,
                format!("expected 'uri' beside the price of {label}, found none; reads are priced by URI, add it"),
            ),
            (None, _) => return None,
            (Some(uri), Kind::Tool | Kind::Prompt) => {
                (Some("uri"), format!("expected 'uri' at resources only, found '{uri}' at {label}; remove it"))
            }
            (Some(uri), Kind::Resource) => match (Template::parse(uri), uri::normal_form(uri)) {
                (Err(fault), _) => (Some("uri"), fault.to_string()),
                (_, Err(broken)) => (
                    Some("uri"),
                    format!(
                        "{broken}, found '{uri}'; a URI that is not in normal form is never read, record it in normal form"
                    ),
                ),
                (Ok(template), Ok(())) => return Some(template),
            },
        };
        self.fault(&entry.label, key, message);
        None
    }
}

/// Permissions that roles grant by name and nothing costs: a typing mistake, or a capability that went away.
fn unpriced_permissions(policy: &Policy, entries: &[PriceEntry]) -> Vec<Fault> {
    let priced: HashSet<&str> = entries.iter().map(|entry| entry.permission.as_str()).collect();
    let mut granting: BTreeMap<PermissionId, Vec<&str>> = BTreeMap::new();
    for (role, grants) in policy.roles() {
        grants.iter().for_each(|permission| granting.entry(permission).or_default().push(role));
    }
    let unpriced = granting.into_iter().filter_map(|(permission, roles)| {
        let name = policy.permissions().name(permission).filter(|name| !priced.contains(name.as_ref()))?;
        let path = [Segment::from("roles"), Segment::from(*roles.first()?)];
        let roles = list(roles);
        let message =
            format!("permission '{name}' is granted (roles: {roles}) and nothing costs it; correct or remove it");
        Some(Fault::new(Part::Policy, path, message))
    });
    unpriced.collect()
}

fn index(capabilities: Vec<Capability>, uris: TemplateSet, uri_owners: Vec<u32>) -> Prices {
    let of = |kind| {
        let of_kind = capabilities.iter().filter(move |capability| capability.label.kind() == kind);
        of_kind.map(|capability| (Box::from(capability.label.name()), capability.index)).collect()
    };
    let (tools, prompts, resources) = (of(Kind::Tool), of(Kind::Prompt), of(Kind::Resource));
    Prices { capabilities, tools, prompts, resources, uris, uri_owners }
}
