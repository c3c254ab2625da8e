//! Envoy itself: its admin endpoint, its runtime, its version.

use serde_json::Value;

use super::Context;
use super::check::Check;
use super::finding::Findings;
use super::value::{at, entries, is_set, member, number, text};

/// Runtime keys that change how `ext_proc` fails.
const GUARDS: [&str; 2] = ["envoy.reloadable_features.ext_proc", "envoy.reloadable_features.skip_ext_proc"];
/// The release that everything here was tried on.
const TESTED: (u64, u64) = (1, 40);

/// Looks at every bootstrap that was read, and at an answer of `/server_info`.
pub(super) fn examine(context: &Context<'_>, server: Option<&Value>, out: &mut Findings) {
    for bootstrap in &context.envoy.bootstraps {
        let admin = bootstrap.get("admin.address.socket_address");
        let address = text(member(admin, "address"));
        let local = address == "::1" || address == "localhost" || address.starts_with("127.");
        if is_set(admin) && !local {
            out.add(
                Check::AdminExposed,
                bootstrap.below("admin.address").trim_start_matches('.'),
                format!("`{address}`"),
            );
        }
        for layer in bootstrap.list("layered_runtime.layers") {
            for key in keys(layer.get("static_layer"), "") {
                if GUARDS.iter().any(|guard| key.starts_with(guard)) {
                    out.add(Check::Runtime, layer.below("static_layer").trim_start_matches('.'), format!("`{key}`"));
                }
            }
        }
        let version = bootstrap.get("node.user_agent_build_version.version");
        if let (Some(major), minor) = (number(member(version, "major_number")), number(member(version, "minor_number")))
        {
            aged(major, minor.unwrap_or_default(), out);
        }
    }
    // `HASH/1.40.0/Clean/RELEASE/BoringSSL`
    let version = server.map(|server| text(at(server, "version"))).unwrap_or_default();
    let mut numbers = version.split('/').nth(1).unwrap_or_default().split('.').map(str::parse);
    if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
        aged(major, minor, out);
    }
}

fn aged(major: u64, minor: u64, out: &mut Findings) {
    if (major, minor) < TESTED {
        out.add(Check::Version, "version", format!("{major}.{minor}"));
    }
}

/// Runtime keys, nested or with dots.
fn keys(layer: &Value, prefix: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in entries(layer) {
        let key = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(_) => all.extend(keys(value, &key)),
            _ => all.push(key),
        }
    }
    all
}
