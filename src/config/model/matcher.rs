//! Which of Envoy's requests belong to a server.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::ladder::head::normal_authority;
use crate::policy::OneOrMany;

/// Which requests belong to this server: exactly one of `route`, `cluster` and `authority`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// Names of Envoy routes (attribute `xds.route_name`). The recommended way: a caller cannot spoof them.
    pub route: Option<OneOrMany<String>>,
    /// Names of Envoy clusters (attribute `xds.cluster_name`). A caller cannot spoof them either.
    pub cluster: Option<OneOrMany<String>>,
    /// Authorities, as `mcp.acme.com` or `mcp.acme.com:8443`, together with `path`. Compared without case, default port
    /// (80 always is one) and trailing dot.
    pub authority: Option<OneOrMany<String>>,
    /// The path that goes with `authority`, compared byte for byte, without a query.
    pub path: Option<String>,
}

impl Match {
    /// What is wrong with it, each with the key that is.
    #[must_use]
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let forms = [("route", &self.route), ("cluster", &self.cluster), ("authority", &self.authority)];
        let given: Vec<&str> = forms.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
        if given.len() != 1 {
            let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            faults.push(("", format!("expected exactly one of `route`, `cluster` and `authority`, found {found}")));
        }
        for (name, value) in forms {
            let Some(names) = value else { continue };
            if names.iter().next().is_none() {
                faults.push((name, "expected at least one name, found an empty list; name one".to_owned()));
            }
            if names.iter().any(String::is_empty) {
                faults.push((name, "expected names that are not empty, found an empty one; remove it".to_owned()));
            }
        }
        faults.extend(self.path_fault().map(|message| ("path", message)));
        for authority in self.authority.iter().flat_map(OneOrMany::iter) {
            if !is_authority(authority) {
                let message =
                    format!("expected a host with an optional port, as mcp.acme.com:8443, found `{authority}`");
                faults.push(("authority", message));
            }
        }
        faults
    }

    fn path_fault(&self) -> Option<String> {
        match (&self.authority, &self.path) {
            (Some(_), None) => {
                Some("expected the `path` that goes with `authority`, which is missing; add it".to_owned())
            }
            (None, Some(_)) => {
                Some("expected `path` beside `authority` only; remove it, or match by authority".to_owned())
            }
            (Some(_), Some(path)) if !path.starts_with('/') || !path.bytes().all(is_path_byte) => {
                Some(format!("expected an absolute path of visible ASCII without query or fragment, found `{path}`"))
            }
            _ => None,
        }
    }

    /// Every single thing that it matches, in a form that is equal exactly when two matchers overlap. `scheme` is the
    /// resource's, which decides on the default port; port 80 is `http`'s, which a proxy beside an agent is spoken to in.
    #[must_use]
    pub fn keys(&self, scheme: &str) -> Vec<(&'static str, String)> {
        let named = |kind: &'static str, names: &Option<OneOrMany<String>>| {
            names.iter().flat_map(OneOrMany::iter).map(|name| (kind, name.clone())).collect::<Vec<_>>()
        };
        let path = self.path.as_deref().unwrap_or_default();
        let mut keys = named("route", &self.route);
        keys.extend(named("cluster", &self.cluster));
        keys.extend(
            self.authority
                .iter()
                .flat_map(OneOrMany::iter)
                .flat_map(|authority| [normal_authority(authority, scheme), normal_authority(authority, "http")])
                .map(|authority| ("authority", format!("{authority}{path}"))),
        );
        keys
    }
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"?#\\".contains(&byte)
}

fn is_authority(text: &str) -> bool {
    let Ok(parsed) = text.parse::<http::uri::Authority>() else { return false };
    let behind = text.strip_prefix(parsed.host()).unwrap_or(text);
    !text.contains(['@', '*']) && !parsed.host().is_empty() && (behind.is_empty() || parsed.port_u16().is_some())
}
