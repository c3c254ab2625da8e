//! Routes: whose they are, and whether `ext_proc` and the lock hold on them.

use serde_json::Value;

use super::Context;
use super::chain::{self, Chain};
use super::check::Check;
use super::envoy::{Manager, Part};
use super::finding::Findings;
use super::guarded::Guard;
use super::value::{entries, is_a, is_set, is_true, items, member, text};
use super::{lock, matching, processor};
use crate::ladder::server::Matcher;

/// One route with what it inherits from.
pub(super) struct Route<'a> {
    pub(super) part: Part<'a>,
    pub(super) host: Part<'a>,
    pub(super) table: Part<'a>,
    /// Whether an earlier route of its virtual host takes everything that a server matches by address here.
    pub(super) shadowed: Vec<&'a str>,
}

/// Whose a route is.
#[derive(Clone, Copy)]
pub(super) struct Claim<'a> {
    pub(super) server: &'a str,
    /// `None` without a configuration of Portcullis: then the lock says whose the route is.
    pub(super) guard: Option<&'a Guard>,
}

impl<'a> Route<'a> {
    /// All routes of a manager.
    pub(super) fn all(manager: &Manager<'a>, context: &Context<'a>) -> Vec<Self> {
        let mut routes = Vec::new();
        for table in &manager.tables {
            for host in table.list("virtual_hosts") {
                let mut parts = host.list("routes");
                within(host.get("matcher"), &host.below("matcher"), &mut parts);
                let mut shadowed = Vec::new();
                for part in parts {
                    let (host, table) = (host.clone(), table.clone());
                    let taken = final_for(part.get("match"), context);
                    routes.push(Self { part, host, table, shadowed: shadowed.clone() });
                    shadowed.extend(taken);
                }
            }
        }
        routes
    }

    /// The parts that it inherits from, itself first.
    pub(super) fn levels(&self) -> [&Part<'a>; 3] {
        [&self.part, &self.host, &self.table]
    }

    /// The clusters that it leads to; empty for a direct response or a redirect.
    pub(super) fn clusters(&self) -> Vec<&'a str> {
        let weighted = items(self.part.get("route.weighted_clusters.clusters")).iter();
        let all = weighted.map(|cluster| text(member(cluster, "name"))).chain([text(self.part.get("route.cluster"))]);
        all.filter(|name| !name.is_empty()).collect()
    }

    /// Whether it leads anywhere but to an answer of Envoy's own.
    pub(super) fn forwards(&self) -> bool {
        is_set(self.part.get("route"))
    }

    /// The per-route configurations of the filter `name`, the most specific first.
    fn overrides(&self, name: &str) -> Vec<Part<'a>> {
        let own = |level: &&Part<'a>| {
            let config = member(level.get("typed_per_filter_config"), name);
            is_set(config).then(|| Part::new(format!("{}.typed_per_filter_config[{name}]", level.place), config))
        };
        self.levels().iter().filter_map(own).collect()
    }

    /// The same of each weighted cluster that has one; it goes before all others there.
    fn weighted(&self, name: &str) -> Vec<Part<'a>> {
        let clusters = self.part.list("route.weighted_clusters.clusters");
        let own = |cluster: &Part<'a>| {
            let config = member(cluster.get("typed_per_filter_config"), name);
            is_set(config).then(|| Part::new(format!("{}.typed_per_filter_config[{name}]", cluster.place), config))
        };
        clusters.iter().filter_map(own).collect()
    }

    /// The server that it belongs to. `exact`: a wildcard domain does not make it one's.
    pub(super) fn claim(&self, context: &Context<'a>, lock: Option<&str>, exact: bool) -> Option<Claim<'a>> {
        let Some(guarded) = context.guarded else {
            let rules = self.overrides(lock?);
            let server = rules.first().and_then(|config| lock::server(config.value))?;
            return Some(Claim { server, guard: None });
        };
        let clusters = self.clusters();
        let domains: Vec<&str> = items(self.host.get("domains")).iter().map(text).collect();
        let is_of = |server: &&'a Guard| match &server.matcher {
            Matcher::Route(names) => names.iter().any(|name| name == self.part.name()),
            Matcher::Cluster(names) => names.iter().any(|name| clusters.contains(&name.as_str())),
            Matcher::Authority { path, .. } => {
                let mut domains = domains.iter().filter(|domain| !exact || !domain.contains('*'));
                domains.any(|domain| server.has_domain(domain))
                    && matching::may_take(self.part.get("match"), path)
                    && !self.shadowed.contains(&server.name.as_str())
            }
        };
        let server = guarded.servers.iter().find(is_of)?;
        Some(Claim { server: &server.name, guard: Some(server) })
    }

    /// The processing mode that holds here, when it is not the filter's own.
    pub(super) fn mode(&self, filter: &str) -> Option<Part<'a>> {
        let modes =
            self.overrides(filter).into_iter().map(|config| unwrapped(&config).part("overrides.processing_mode"));
        modes.into_iter().find(|mode| is_set(mode.value))
    }

    /// Whether the filter `name` is turned off here, and where.
    pub(super) fn disabled(&self, name: &str) -> Option<String> {
        let own = self.weighted(name).into_iter().find(is_off);
        own.or_else(|| self.overrides(name).into_iter().next().filter(is_off)).map(|part| part.place)
    }
}

fn is_off(config: &Part<'_>) -> bool {
    is_true(config.get("disabled")) || is_true(unwrapped(config).get("disabled"))
}

/// `envoy.config.route.v3.FilterConfig` carries the real one in `config`.
fn unwrapped<'a>(config: &Part<'a>) -> Part<'a> {
    if is_a(config.value, "FilterConfig") { config.part("config") } else { config.clone() }
}

/// The servers, matched by address, whose requests this route takes in any case.
fn final_for<'a>(matched: &Value, context: &Context<'a>) -> Vec<&'a str> {
    let servers = context.guarded.into_iter().flat_map(|guarded| &guarded.servers);
    let taken = servers.filter(|server| match &server.matcher {
        Matcher::Authority { path, .. } => matching::unconditional(matched) && matching::may_take(matched, path),
        _ => false,
    });
    taken.map(|server| server.name.as_str()).collect()
}

/// Routes within a virtual host's matcher tree.
fn within<'a>(value: &'a Value, place: &str, routes: &mut Vec<Part<'a>>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                within(item, &format!("{place}[{index}]"), routes);
            }
        }
        Value::Object(_) if is_a(value, "Route") => routes.push(Part::new(place, value)),
        Value::Object(_) => entries(value).for_each(|(key, below)| within(below, &format!("{place}.{key}"), routes)),
        _ => {}
    }
}

/// Looks at one route of a manager that asks Portcullis.
pub(super) fn examine<'a>(
    route: &Route<'a>,
    claim: Option<Claim<'a>>,
    chain: &Chain<'a>,
    context: &Context<'a>,
    out: &mut Findings,
) {
    let Some(filter) = chain.processor() else { return };
    let name = filter.part.name();
    for config in route.weighted(name).into_iter().chain(route.overrides(name)) {
        overridden(&unwrapped(&config), filter.config, context, out);
    }
    writers(route, chain, context, out);
    if !route.forwards() {
        return;
    }
    let Some(claim) = claim else { return unclaimed(route, name, filter.config, context, out) };
    if let Some(place) = route.disabled(name) {
        out.add(
            Check::RouteExtProcDisabled,
            place,
            format!("`disabled: true` on a route of server `{}`", claim.server),
        );
    }
    for cleaner in chain.filters.iter().filter(|filter| filter.kind == "header_mutation") {
        if let Some(place) = route.disabled(cleaner.part.name()) {
            out.add(Check::XEnvoy, place, "turned off on a guarded route");
        }
    }
    modes(route, claim, name, out);
    if let Some(filter) = chain.lock() {
        locked(route, claim, filter.part.name(), out);
    }
}

fn modes(route: &Route<'_>, claim: Claim<'_>, name: &str, out: &mut Findings) {
    let Some(mode) = route.mode(name) else { return };
    // Plain HTTP is decided about by its headers.
    let reads = claim.guard.is_none_or(|guard| guard.request.is_some());
    let bodyless = !reads || matching::bodyless(route.part.get("match"));
    if let Some(found) = processor::request_fault(mode.value, bodyless) {
        out.add(Check::RequestMode, &*mode.place, found);
    }
    if let Some(found) = processor::response_fault(mode.value).filter(|_| reads) {
        out.add(Check::ResponseMode, &*mode.place, found);
    }
}

/// An override of the filter that asks Portcullis, on any route.
fn overridden(config: &Part<'_>, base: &Value, context: &Context<'_>, out: &mut Findings) {
    let overrides = config.part("overrides");
    if is_true(overrides.get("failure_mode_allow")) {
        out.add(Check::FailureModeAllow, overrides.below("failure_mode_allow"), "`failure_mode_allow: true`");
    }
    let cluster = processor::cluster(overrides.value);
    if is_set(overrides.get("grpc_service")) && cluster != processor::cluster(base) {
        out.add(Check::RouteOtherProcessor, overrides.below("grpc_service"), format!("cluster `{cluster}`"));
    }
    if is_set(overrides.get("metadata_options.receiving_namespaces")) {
        processor::metadata(&overrides, context.guarded, out);
    }
    if is_set(overrides.get("processing_request_modifier")) {
        out.add(Check::Options, overrides.below("processing_request_modifier"), "`processing_request_modifier`");
    }
}

/// Per-route configurations of other filters that write our metadata.
fn writers(route: &Route<'_>, chain: &Chain<'_>, context: &Context<'_>, out: &mut Findings) {
    let ours = [chain.processor(), chain.lock()].map(|filter| filter.map(|filter| filter.part.name()));
    for level in route.levels() {
        for (name, config) in
            entries(level.get("typed_per_filter_config")).filter(|(name, _)| !ours.contains(&Some(name)))
        {
            let part = Part::new(format!("{}.typed_per_filter_config[{name}]", level.place), config);
            chain::writes(&part, config, name, context, out);
        }
    }
}

/// A route to an upstream that is no server's.
fn unclaimed(route: &Route<'_>, name: &str, base: &Value, context: &Context<'_>, out: &mut Findings) {
    let Some(guarded) = context.guarded else { return };
    let clusters = route.clusters().join(", ");
    if !guarded.passes {
        out.add(Check::RouteUnclaimed, &*route.part.place, format!("a route to `{clusters}` that no server matches"));
        return;
    }
    let mode = route.mode(name).unwrap_or_else(|| Part::new(&*route.part.place, member(base, "processing_mode")));
    let body = text(member(mode.value, "request_body_mode"));
    if !matches!(body, "" | "NONE") && route.disabled(name).is_none() {
        out.add(Check::RouteBuffers, &*mode.place, format!("`request_body_mode: {body}` on a route to `{clusters}`"));
    }
}

/// The lock of a guarded route.
fn locked(route: &Route<'_>, claim: Claim<'_>, name: &str, out: &mut Findings) {
    let mut locks = route.weighted(name);
    locks.extend(route.overrides(name).into_iter().take(1));
    if locks.is_empty() {
        let found = format!("none under `{name}`; a verdict for any server opens this route of `{}`", claim.server);
        out.add(Check::RouteLockMissing, &*route.part.place, found);
    }
    for config in locks {
        let lock = unwrapped(&config);
        let rules = lock.get("rbac.rules");
        if is_off(&config) || !is_set(rules) {
            out.add(Check::RouteLockDisabled, &*config.place, "no rules: everything passes");
        } else if let Err(found) = lock::opens_only_for(rules, lock::Asks::Decided) {
            out.add(Check::RouteLockWrong, &*config.place, found);
        } else if let Err(found) = lock::opens_only_for(rules, lock::Asks::Server(claim.server)) {
            let other = lock::server(rules).map(|other| format!("; it names `{other}`")).unwrap_or_default();
            let expected = format!("`portcullis.server` is `{}`, whose route this is", claim.server);
            out.expecting(Check::RouteLockServer, &*config.place, expected, format!("{found}{other}"));
        }
    }
}
