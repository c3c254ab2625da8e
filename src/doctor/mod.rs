//! What is unsafe, or will surprise, in the configuration of the Envoy that asks us.
//!
//! ```text
//! text ──read──▶ JSON in one spelling ──envoy──▶ listeners, routes, clusters
//!                                                  │ manager, chain, lock, processor, routes, policies, clusters, bypass, whole
//!                                                  ▼
//!                                             Vec<Finding>
//! ```
//!
//! Pure: a configuration of Envoy and, where there is one, of Portcullis go in, findings come out. What is not understood
//! is told, never taken for good. `docs/doctor.md` explains each [`Check`].

mod bypass;
mod chain;
mod check;
mod clusters;
mod envoy;
mod finding;
mod guarded;
mod lock;
mod manager;
mod matching;
mod normal;
mod policies;
mod processor;
mod read;
mod routes;
mod value;
mod whole;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use check::{Check, Severity};
pub use finding::Finding;
pub use guarded::Guarded;
pub use read::{MAX_BYTES, read};

use bypass::Upstreams;
use chain::Chain;
use envoy::{Envoy, Manager};
use finding::Findings;
use routes::{Claim, Route};

use crate::ladder::server::Matcher;

/// What every check may look at.
struct Context<'a> {
    envoy: &'a Envoy<'a>,
    guarded: Option<&'a Guarded>,
}

/// A manager, its filters and its routes with their owners.
struct Served<'a> {
    manager: Manager<'a>,
    chain: Chain<'a>,
    routes: Vec<(Route<'a>, Option<Claim<'a>>)>,
}

/// Looks at a configuration that [`read`] gave. `server` is an answer of `/server_info`, when there is one.
///
/// The worst findings come first.
#[must_use]
pub fn examine(configuration: &Value, guarded: Option<&Guarded>, server: Option<&Value>) -> Vec<Finding> {
    let mut out = Findings::default();
    let envoy = Envoy::collect(configuration, &mut out);
    let context = Context { envoy: &envoy, guarded };
    if guarded.is_none() {
        out.add(Check::NoConfiguration, "--config", "none");
    }
    let managers = envoy.managers(&mut out);
    if managers.is_empty() && !envoy.partial {
        out.add(Check::NothingServed, "static_resources.listeners", "none");
    }
    let all: Vec<Served<'_>> = managers.into_iter().map(|manager| Served::of(manager, &context, &mut out)).collect();
    let mut upstreams = Upstreams::default();
    for own in &all {
        for (route, _) in own.routes.iter().filter(|(_, claim)| claim.is_some()) {
            upstreams.add(route, &context);
        }
    }
    for own in &all {
        own.examine(&upstreams, &context, &mut out);
    }
    upstreams.network(&context, &mut out);
    named(&all, &context, &mut out);
    whole::examine(&context, server, &mut out);
    out.sorted()
}

impl<'a> Served<'a> {
    fn of(manager: Manager<'a>, context: &Context<'a>, out: &mut Findings) -> Self {
        let chain = Chain::read(&manager.part, context, out);
        let lock = chain.lock().map(|filter| filter.part.name());
        let exact = chain.processor().is_none();
        let claimed = |route: Route<'a>| {
            let claim = route.claim(context, lock, exact);
            (route, claim)
        };
        let routes = Route::all(&manager, context).into_iter().map(claimed).collect();
        Self { manager, chain, routes }
    }

    fn examine(&self, upstreams: &Upstreams<'a>, context: &Context<'a>, out: &mut Findings) {
        let guards = |(route, claim): &&(Route<'a>, Option<Claim<'a>>)| claim.is_some() && route.forwards();
        let Some(filter) = self.chain.processor() else {
            if let Some((route, _)) = self.routes.iter().find(guards) {
                let found = format!("none, and a guarded route {}", route.part.place);
                out.add(Check::ExtProcMissing, self.manager.part.below("http_filters"), found);
            }
            for (route, _) in self.routes.iter().filter(|(_, claim)| claim.is_none()) {
                upstreams.route(route, "no ext_proc filter stands ahead of it", context, out);
            }
            return;
        };
        let asks = filter.part.part("typed_config");
        let asks = envoy::Part::new(asks.place, filter.config);
        processor::examine(&asks, context.guarded, out);
        self.chain.examine(&self.manager.part, context, out);
        clusters::portcullis(&asks, filter.config, context, out);
        let all = self.routes.iter().filter(|(route, _)| route.forwards());
        let only_guarded = all.clone().all(|(_, claim)| claim.is_some());
        manager::examine(&self.manager, context.guarded, only_guarded, out);
        let name = filter.part.name();
        for (route, claim) in &self.routes {
            routes::examine(route, *claim, &self.chain, context, out);
            match claim {
                Some(claim) if route.forwards() => {
                    policies::examine(route, *claim, &self.manager, (name, filter.config), out);
                    let credential = claim.guard.is_none_or(|guard| guard.credential);
                    for cluster in route.clusters() {
                        clusters::upstream(cluster, credential, context, out);
                    }
                }
                None if route.disabled(name).is_some() => {
                    upstreams.route(route, "ext_proc is turned off on it", context, out);
                }
                None if context.guarded.is_none_or(|guarded| guarded.passes) => {
                    upstreams.route(route, "no server matches it, so that nothing is decided", context, out);
                }
                _ => {}
            }
        }
    }
}

/// What `portcullis.yaml` matches must be somewhere.
fn named(served: &[Served<'_>], context: &Context<'_>, out: &mut Findings) {
    let partial = context.envoy.partial || served.iter().any(|own| own.manager.partial);
    let Some(guarded) = context.guarded.filter(|_| !partial) else { return };
    let all = || served.iter().flat_map(|own| &own.routes);
    for server in &guarded.servers {
        let (what, names): (&str, Vec<&String>) = match &server.matcher {
            Matcher::Route(names) => ("route", names.iter().collect()),
            Matcher::Cluster(names) => ("cluster", names.iter().collect()),
            Matcher::Authority { .. } => ("authority", Vec::new()),
        };
        let missing: Vec<&str> = names
            .into_iter()
            .map(String::as_str)
            .filter(|name| match what {
                "route" => all().all(|(route, _)| route.part.name() != *name),
                _ => all().all(|(route, _)| !route.clusters().contains(name)),
            })
            .collect();
        for name in missing {
            let expected = format!("a {what} `{name}`, which server `{}` matches", server.name);
            out.expecting(Check::RouteUnknown, format!("servers[{}].match.{what}", server.name), expected, "none");
        }
        let unclaimed = all().all(|(_, claim)| claim.is_none_or(|claim| claim.server != server.name));
        if what == "authority" && unclaimed {
            let expected = format!("a route for the authority and path of server `{}`", server.name);
            out.expecting(Check::RouteUnknown, format!("servers[{}].match.authority", server.name), expected, "none");
        }
    }
}
