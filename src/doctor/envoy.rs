//! What an Envoy serves, whichever form its configuration came in: bootstrap, dump, or a list of xDS resources.

use std::collections::HashMap;

use serde_json::Value;

use super::check::Check;
use super::finding::Findings;
use super::value::{any_within, at, entries, is_a, is_set, item_place, items, member, text, word};

/// A part of the configuration, and where it stands.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) place: String,
    pub(super) value: &'a Value,
}

impl<'a> Part<'a> {
    pub(super) fn new(place: impl Into<String>, value: &'a Value) -> Self {
        Self { place: place.into(), value }
    }

    /// The value of the dotted path `key`.
    pub(super) fn get(&self, key: &str) -> &'a Value {
        at(self.value, key)
    }

    /// The place of the dotted path `key`.
    pub(super) fn below(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }

    /// The part at the dotted path `key`.
    pub(super) fn part(&self, key: &str) -> Part<'a> {
        Part::new(self.below(key), self.get(key))
    }

    /// The items of the list at the dotted path `key`.
    pub(super) fn list(&self, key: &str) -> Vec<Part<'a>> {
        let items = items(self.get(key)).iter().enumerate();
        items.map(|(index, item)| Part::new(item_place(&self.place, key, index, item), item)).collect()
    }

    pub(super) fn name(&self) -> &'a str {
        text(self.get("name"))
    }
}

/// All that was found in the configuration.
#[derive(Default)]
pub(super) struct Envoy<'a> {
    pub(super) listeners: Vec<Part<'a>>,
    pub(super) clusters: HashMap<&'a str, Part<'a>>,
    routes: HashMap<&'a str, Part<'a>>,
    /// HTTP filters that came by ECDS.
    filters: HashMap<&'a str, Part<'a>>,
    /// Endpoints that came by EDS, by the name they are asked for.
    endpoints: HashMap<&'a str, &'a Value>,
    pub(super) bootstraps: Vec<Part<'a>>,
    /// Whether clusters may exist that are not here.
    pub(super) partial: bool,
}

/// One HTTP connection manager.
pub(super) struct Manager<'a> {
    pub(super) part: Part<'a>,
    pub(super) listener: Part<'a>,
    /// The filter chain's TLS.
    pub(super) transport: &'a Value,
    /// Its route tables; more than one with scoped routes.
    pub(super) tables: Vec<Part<'a>>,
    /// Whether it has routes that are not here.
    pub(super) partial: bool,
}

impl<'a> Envoy<'a> {
    pub(super) fn collect(root: &'a Value, out: &mut Findings) -> Self {
        let mut envoy = Self::default();
        if is_set(member(root, "configs")) {
            for config in items(member(root, "configs")) {
                envoy.dumped(config, out);
            }
        } else if is_set(member(root, "resources")) {
            envoy.partial = true;
            for (index, resource) in items(member(root, "resources")).iter().enumerate() {
                envoy.resource(Part::new(item_place("", "resources", index, resource), resource));
            }
        } else {
            envoy.bootstrap(&Part::new("", root));
            envoy.dynamic(root, out);
        }
        envoy
    }

    fn bootstrap(&mut self, root: &Part<'a>) {
        let root = Part::new(root.place.clone(), root.value);
        let resources = Part::new(trimmed(&root.below("static_resources")), root.get("static_resources"));
        for listener in resources.list("listeners") {
            self.listeners.push(listener);
        }
        for cluster in resources.list("clusters") {
            self.clusters.insert(cluster.name(), cluster);
        }
        self.bootstraps.push(root);
    }

    fn dynamic(&mut self, root: &'a Value, out: &mut Findings) {
        for (key, _) in entries(at(root, "dynamic_resources")).filter(|(key, _)| *key != "ads_config") {
            self.partial = true;
            out.add(Check::Incomplete, format!("dynamic_resources.{key}"), "resources that come from elsewhere");
        }
    }

    fn resource(&mut self, part: Part<'a>) {
        if is_a(part.value, "Listener") {
            self.listeners.push(part);
        } else if is_a(part.value, "Cluster") {
            self.clusters.insert(part.name(), part);
        } else if is_a(part.value, "RouteConfiguration") {
            self.routes.insert(part.name(), part);
        } else if is_a(part.value, "TypedExtensionConfig") {
            self.filters.insert(part.name(), part);
        }
    }

    /// One section of `/config_dump`. What it repeats (the bootstrap's static resources) is read once.
    fn dumped(&mut self, config: &'a Value, out: &mut Findings) {
        let section = Part::new("", config);
        if is_a(config, "BootstrapConfigDump") {
            self.bootstraps.push(section.part("bootstrap"));
        }
        for list in ["static_endpoint_configs", "dynamic_endpoint_configs"] {
            for endpoints in items(member(config, list)).iter().map(|own| member(own, "endpoint_config")) {
                self.endpoints.insert(text(member(endpoints, "cluster_name")), endpoints);
            }
        }
        for (list, states, below) in DUMPED {
            for dumped in section.list(list) {
                for state in states.iter().filter(|state| is_set(dumped.get(state)) || state.is_empty()) {
                    let resource = if state.is_empty() { dumped.get(below) } else { at(dumped.get(state), below) };
                    let key = list.trim_end_matches('s');
                    let place = match text(member(resource, "name")) {
                        "" => dumped.place.trim_start_matches('.').to_owned(),
                        name => format!("{key}s[{name}]"),
                    };
                    self.resource_as(below, Part::new(place, resource));
                }
                if is_set(dumped.get("error_state")) {
                    let why = text(dumped.get("error_state.details"));
                    out.add(
                        Check::Rejected,
                        dumped.place.trim_start_matches('.'),
                        format!("an update that Envoy rejected: {why}"),
                    );
                }
            }
        }
    }

    fn resource_as(&mut self, kind: &str, part: Part<'a>) {
        match kind {
            "listener" => self.listeners.push(part),
            "cluster" => drop(self.clusters.insert(part.name(), part)),
            "route_config" => drop(self.routes.insert(part.name(), part)),
            _ => drop(self.filters.insert(part.name(), part)),
        }
    }

    /// Every HTTP connection manager, and everything else that forwards.
    pub(super) fn managers(&self, out: &mut Findings) -> Vec<Manager<'a>> {
        let mut managers = Vec::new();
        for listener in &self.listeners {
            for chain in chains(listener) {
                for filter in chain.list("filters") {
                    let typed = filter.part("typed_config");
                    if is_a(typed.value, "HttpConnectionManager") {
                        managers.push(self.manager(
                            &filter.place,
                            typed.value,
                            listener,
                            chain.get("transport_socket"),
                            out,
                        ));
                    }
                }
            }
            let api = listener.part("api_listener.api_listener");
            if is_a(api.value, "HttpConnectionManager") {
                managers.push(self.manager(&api.place, api.value, listener, &Value::Null, out));
            }
        }
        managers
    }

    fn manager(
        &self,
        place: &str,
        config: &'a Value,
        listener: &Part<'a>,
        transport: &'a Value,
        out: &mut Findings,
    ) -> Manager<'a> {
        let part = Part::new(place, config);
        let (mut tables, mut partial) = (Vec::new(), false);
        if is_set(part.get("route_config")) {
            tables.push(part.part("route_config"));
        }
        let by_name = text(part.get("rds.route_config_name"));
        match self.routes.get(by_name) {
            Some(table) => tables.push(table.clone()),
            None if is_set(part.get("rds")) => {
                partial = true;
                out.add(Check::Incomplete, part.below("rds"), format!("routes `{by_name}` that come from elsewhere"));
            }
            None => {}
        }
        if is_set(part.get("scoped_routes")) {
            // Which of them belong to these scopes is keyed by the request; each may be used.
            tables.extend(self.routes.values().cloned());
            for scope in part.list("scoped_routes.scoped_route_configurations_list.scoped_route_configurations") {
                if is_set(scope.get("route_configuration")) {
                    tables.push(scope.part("route_configuration"));
                }
            }
            if tables.is_empty() {
                partial = true;
                out.add(Check::Incomplete, part.below("scoped_routes"), "routes that come from elsewhere");
            }
        }
        Manager { part, listener: listener.clone(), transport, tables, partial }
    }

    /// The HTTP filters of a list, with what came by ECDS in the place of its name; `None` stands for what is not here.
    pub(super) fn http_filters(&self, holder: &Part<'a>, key: &str) -> Vec<(Part<'a>, Option<&'a Value>)> {
        let resolve = |filter: Part<'a>| {
            let own = filter.get("typed_config");
            let discovery = filter.get("config_discovery");
            let config = if is_set(discovery) {
                let found = self.filters.get(filter.name()).map(|part| part.get("typed_config"));
                found.or_else(|| Some(member(discovery, "default_config")).filter(|config| is_set(config)))
            } else {
                Some(own)
            };
            (filter, config)
        };
        holder.list(key).into_iter().map(resolve).collect()
    }

    /// Whether any `ext_proc` filter is named for Portcullis.
    pub(super) fn names_us(&self) -> bool {
        let ours = |map: &serde_json::Map<String, Value>| {
            let filter = map.get("@type").is_some_and(|name| text(name).ends_with(".ExternalProcessor"));
            filter && map.values().any(|value| value.to_string().contains("portcullis"))
        };
        self.listeners.iter().any(|listener| any_within(listener.value, &ours))
    }

    /// The places where a cluster's endpoints are, as far as they are written down.
    pub(super) fn addresses(&self, cluster: &str) -> Vec<&'a Value> {
        let Some(cluster) = self.clusters.get(cluster) else { return Vec::new() };
        let service = text(cluster.get("eds_cluster_config.service_name"));
        let by_eds = self.endpoints.get(if service.is_empty() { cluster.name() } else { service });
        let own = items(cluster.get("load_assignment.endpoints"));
        let groups =
            if own.is_empty() { by_eds.map_or(own, |found| items(member(found, "endpoints"))) } else { own }.iter();
        let endpoints = groups.flat_map(|group| items(member(group, "lb_endpoints")));
        endpoints.map(|endpoint| at(endpoint, "endpoint.address")).filter(|address| is_set(address)).collect()
    }
}

/// Sections of a dump: the list, the states that hold a resource (empty: the entry itself), the resource's key.
const DUMPED: [(&str, &[&str], &str); 9] = [
    ("static_listeners", &[""], "listener"),
    ("dynamic_listeners", &["active_state", "warming_state"], "listener"),
    ("static_clusters", &[""], "cluster"),
    ("dynamic_active_clusters", &[""], "cluster"),
    ("dynamic_warming_clusters", &[""], "cluster"),
    ("static_route_configs", &[""], "route_config"),
    ("dynamic_route_configs", &[""], "route_config"),
    ("inline_scoped_route_configs", &[""], "none"),
    ("ecds_filters", &[""], "ecds_filter"),
];

fn trimmed(place: &str) -> String {
    place.trim_start_matches('.').to_owned()
}

/// The filter chains of a listener, the default one included.
pub(super) fn chains<'a>(listener: &Part<'a>) -> Vec<Part<'a>> {
    let mut chains = listener.list("filter_chains");
    if is_set(listener.get("default_filter_chain")) {
        chains.push(listener.part("default_filter_chain"));
    }
    chains
}

/// The kind of a filter: `lua` for `envoy.extensions.filters.http.lua.v3.Lua`, by its name where it has no type.
pub(super) fn kind<'a>(filter: &Part<'a>, config: &'a Value) -> &'a str {
    let of_type = text(member(config, "@type")).rsplit('.').nth(2).filter(|kind| !kind.is_empty());
    of_type.unwrap_or_else(|| filter.name().rsplit('.').next().unwrap_or_default())
}

/// Whether HTTP/3 is spoken.
pub(super) fn speaks_http3(manager: &Manager<'_>) -> bool {
    let codec = word(manager.part.get("codec_type"), &["AUTO", "HTTP1", "HTTP2", "HTTP3"]);
    codec == "HTTP3" || is_set(manager.listener.get("udp_listener_config.quic_options"))
}
