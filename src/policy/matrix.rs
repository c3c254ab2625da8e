//! The access matrix: who can do what, for the eyes of whoever reviews a policy.

use std::fmt;
use std::sync::Arc;

use super::permission::PermissionSet;
use super::prices::Prices;
use super::rules::Policy;
use super::scope::Scopes;

/// Who can do what on one server. [`fmt::Display`] renders it as aligned text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Names of all roles; the columns.
    pub roles: Vec<Arc<str>>,
    /// One per priced capability, in entry order.
    pub capabilities: Vec<CapabilityRow>,
    /// One per rule, in order.
    pub rules: Vec<RuleRow>,
}

/// A capability, what it takes, and which roles have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityRow {
    /// The canonical label.
    pub capability: Arc<str>,
    /// The permission it costs.
    pub permission: Arc<str>,
    /// All scopes a call needs: those of every call, then its own.
    pub scopes: Vec<String>,
    /// By role, in the order of [`Matrix::roles`]: whether it grants the permission.
    pub allowed: Vec<bool>,
}

/// A rule and what it gives by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRow {
    /// Whom it matches.
    pub who: Arc<str>,
    /// The roles it gives.
    pub roles: Vec<Arc<str>>,
    /// Whether it denies.
    pub deny: bool,
    /// Canonical labels of the capabilities its roles pay for; empty when it denies.
    pub capabilities: Vec<Arc<str>>,
}

impl Matrix {
    /// Lays out a policy against the prices and scopes it was reconciled with.
    #[must_use]
    pub fn new(policy: &Policy, prices: &Prices, scopes: &Scopes) -> Self {
        let columns: Vec<(&Arc<str>, &PermissionSet)> = policy.roles().collect();
        let row = |capability: &super::Capability| {
            let mut needed = scopes.required().clone();
            needed.union(&capability.scopes);
            CapabilityRow {
                capability: Arc::clone(&capability.text),
                permission: Arc::clone(&capability.permission_name),
                scopes: scopes.names(&needed).map(str::to_owned).collect(),
                allowed: columns.iter().map(|(_, grants)| grants.contains(capability.permission)).collect(),
            }
        };
        let by_rule = policy.rules().map(|(who, roles, deny, grants)| {
            let paid =
                prices.capabilities().iter().filter(|capability| !deny && grants.contains(capability.permission));
            RuleRow { who: Arc::clone(who), roles, deny, capabilities: paid.map(|one| Arc::clone(&one.text)).collect() }
        });
        Self {
            capabilities: prices.capabilities().iter().map(row).collect(),
            rules: by_rule.collect(),
            roles: columns.into_iter().map(|(name, _)| Arc::clone(name)).collect(),
        }
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["capability", "permission", "scopes"].map(str::to_owned);
        let mut rows = vec![head.into_iter().chain(self.roles.iter().map(|role| visible(role))).collect::<Vec<_>>()];
        for row in &self.capabilities {
            let scopes = if row.scopes.is_empty() { "-".to_owned() } else { row.scopes.join(" ") };
            let allowed = row.allowed.iter().map(|allowed| if *allowed { "yes" } else { "-" }.to_owned());
            rows.push(
                [visible(&row.capability), visible(&row.permission), scopes].into_iter().chain(allowed).collect(),
            );
        }
        write_table(f, &rows)?;
        writeln!(f)?;
        let mut rows = vec![["who", "roles", "may use"].map(str::to_owned).to_vec()];
        for row in &self.rules {
            let join = |names: &[Arc<str>]| match names {
                [] => "-".to_owned(),
                names => names.iter().map(|name| visible(name)).collect::<Vec<_>>().join(", "),
            };
            let may = match row.capabilities.len() {
                _ if row.deny => "nothing, whatever other rules say".to_owned(),
                0 => "nothing".to_owned(),
                count if count == self.capabilities.len() => format!("all {count}"),
                _ => join(&row.capabilities),
            };
            let roles = if row.deny { "(deny)".to_owned() } else { join(&row.roles) };
            rows.push(vec![visible(&row.who), roles, may]);
        }
        write_table(f, &rows)
    }
}

/// A name with its control and invisible characters escaped: a label comes from a server and is printed to a terminal.
fn visible(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len()), |mut out, letter| {
        if letter.is_ascii_graphic() || letter == ' ' || letter.is_alphanumeric() {
            out.push(letter);
        } else {
            out.extend(letter.escape_unicode());
        }
        out
    })
}

/// Writes rows with every column as wide as its widest cell, two blanks apart, nothing behind the last.
fn write_table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>();
        writeln!(f, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
