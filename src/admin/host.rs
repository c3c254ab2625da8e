//! Under which names the admin listener answers.
//!
//! DNS rebinding: a page on the web makes its own name resolve to 127.0.0.1 and then reads what listens there, as its own
//! origin. It cannot choose the `Host` header, which stays its own name. So a request is answered only when it calls this
//! listener by an address that it really has, by `localhost` where that is one, or by a name that the operator gave.

use std::net::IpAddr;

/// The names that were given in the configuration.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Names beside the address, compared without case.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Whether `authority` (a `Host` header's value) calls a listener that was reached on `local`. The port is not looked at:
    /// a forwarded port is another one.
    #[must_use]
    pub fn admit(&self, authority: &str, local: IpAddr) -> bool {
        let Some(host) = host(authority) else { return false };
        if let Ok(address) = host.parse::<IpAddr>() {
            return address == local || (address.is_loopback() && local.is_loopback());
        }
        let host = host.to_ascii_lowercase();
        (host == "localhost" && local.is_loopback()) || self.0.contains(&host)
    }
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`; `None` of anything else.
fn host(authority: &str) -> Option<&str> {
    let port = |rest: &str| rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return port(rest).then_some(host);
    }
    let end = authority.find(':').unwrap_or(authority.len());
    let (host, rest) = authority.split_at_checked(end)?;
    (!host.is_empty() && port(rest)).then_some(host)
}
