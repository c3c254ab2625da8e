//! Who may do what: rules, roles, the principal, prices, scopes and URI templates. Pure.
//!
//! Everything here is compiled once, when the configuration loads, into tables that a call only looks things up in: no
//! I/O, no clock, and nothing whose cost grows with the number of rules, roles or prices once a token was seen.
//!
//! ```text
//! PolicySource ──compile──▶ Policy ──principal(Claims)──▶ Principal { roles, permissions }
//! required scopes, capability scopes, implies ──▶ Scopes ──held(token's scopes)──▶ ScopeSet
//! PriceEntry… ──reconcile with both──▶ Prices ──tool(name) | prompt(name) | covering(uri)──▶ Capability
//! ```
//!
//! A call runs when the principal's permissions contain [`Capability::permission`] of *every* capability it reaches,
//! and the token's scopes contain their [`Capability::scopes`]. Identifiers ([`PermissionId`], [`ScopeSet`]) mean
//! something only together with the [`Policy`] and [`Scopes`] that made them.

mod bits;
mod capability;
mod claims;
mod fault;
mod matrix;
mod one_or_many;
mod permission;
mod prices;
mod principal;
mod rules;
mod scope;
mod source;
mod template;
pub mod uri;

pub use capability::{EmptyName, Kind, Label};
pub use claims::{Claims, Email};
pub use fault::{Fault, Part, Segment};
pub use matrix::Matrix;
pub use one_or_many::OneOrMany;
pub use permission::{PermissionId, PermissionSet, Permissions};
pub use prices::{Capability, Covering, PriceEntry, Prices, Reconciled};
pub use principal::Principal;
pub use rules::{Explanation, MatchedRule, Policy};
pub use scope::{ScopeSet, Scopes, is_scope_token};
pub(crate) use source::written;
pub use source::{MatchSource, PolicySource, RuleSource, Scalar};
pub use template::{Template, TemplateFault, TemplateSet};

#[cfg(test)]
mod testing;
