//! Ways to a guarded upstream that pass by Portcullis.

use std::collections::HashSet;

use serde_json::Value;

use super::Context;
use super::check::Check;
use super::envoy::chains;
use super::finding::Findings;
use super::routes::Route;
use super::value::{any_within, is_a, member, text};

/// The upstreams of guarded routes.
#[derive(Default)]
pub(super) struct Upstreams<'a> {
    clusters: HashSet<&'a str>,
    addresses: HashSet<String>,
}

impl<'a> Upstreams<'a> {
    pub(super) fn add(&mut self, route: &Route<'a>, context: &Context<'a>) {
        for cluster in route.clusters() {
            self.clusters.insert(cluster);
            self.addresses.extend(context.envoy.addresses(cluster).into_iter().map(Value::to_string));
        }
    }

    /// Whether a cluster leads to one of them, under its own or another name.
    fn reached_by(&self, cluster: &str, context: &Context<'a>) -> bool {
        let known = |address: &&Value| self.addresses.contains(&address.to_string());
        self.clusters.contains(cluster) || context.envoy.addresses(cluster).iter().any(known)
    }

    /// A route that nobody decides about.
    pub(super) fn route(&self, route: &Route<'a>, why: &str, context: &Context<'a>, out: &mut Findings) {
        for cluster in route.clusters().into_iter().filter(|cluster| self.reached_by(cluster, context)) {
            out.add(Check::RouteBypass, &*route.part.place, format!("a route to `{cluster}`: {why}"));
        }
    }

    /// Network filters that forward bytes.
    pub(super) fn network(&self, context: &Context<'a>, out: &mut Findings) {
        for listener in &context.envoy.listeners {
            for filter in chains(listener).iter().flat_map(|chain| chain.list("filters")) {
                let config = filter.get("typed_config");
                if is_a(config, "HttpConnectionManager") {
                    continue;
                }
                let leads = |map: &serde_json::Map<String, Value>| {
                    ["cluster", "name"]
                        .iter()
                        .any(|key| map.get(*key).is_some_and(|name| self.reached_by(text(name), context)))
                };
                if any_within(config, &leads) {
                    let kind = text(member(config, "@type")).rsplit('.').next().unwrap_or_default();
                    out.add(Check::RouteBypass, &*filter.place, format!("`{kind}` to a guarded upstream"));
                }
            }
        }
    }
}
