//! What the page asks for: `/page.json`, small and often, and `/page.json?details` when that says it has changed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::super::Admin;
use super::super::status::status;
use super::Page;
use super::pretty::pretty;
use crate::ladder::{Server, Snapshot};
use crate::policy::Matrix;
use crate::telemetry::recent::Refusal;
use crate::telemetry::record::Outcome;
use crate::upstream::book::{Drift, SHOWN};

/// Definitions that are told side by side; of further ones only the number is.
const SIDE_BY_SIDE: usize = 50;

/// What changes all the time. `details` changes when [`details`] does.
pub(in crate::admin) fn live(admin: &Admin, page: &Page) -> Value {
    let (outcomes, recorded) = page.counters.outcomes();
    let outcomes =
        Outcome::ALL.iter().zip(outcomes).map(|(outcome, count)| (outcome.as_str().to_owned(), count.into()));
    let mut decisions: Map<String, Value> = outcomes.collect();
    decisions.insert("would_refuse".to_owned(), recorded.into());
    json!({
        "clock_ms": u64::try_from(page.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        "status": status(admin),
        "decisions": decisions,
        "refusals": page.recent.all().iter().map(refusal).collect::<Vec<_>>(),
        "details": version(admin, &admin.service.snapshot()),
    })
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let at = humantime::format_rfc3339_millis(refusal.at).to_string();
    let Refusal { id, reason, rung, enforced, server, method, capability, principal, detail, at: SystemTime { .. } } =
        refusal;
    json!({
        "id": id, "at": at, "reason": reason, "rung": rung, "enforced": enforced, "server": server, "method": method,
        "capability": capability, "principal": principal, "detail": detail,
    })
}

/// Drift with both texts, and who may call what.
pub(in crate::admin) fn details(admin: &Admin) -> Value {
    let snapshot = admin.service.snapshot();
    let mut details = compared(&snapshot);
    if let Some(details) = details.as_object_mut() {
        details.insert("details".to_owned(), version(admin, &snapshot).into());
    }
    details
}

pub(super) fn compared(snapshot: &Snapshot) -> Value {
    let drifts = drifts(snapshot);
    json!({
        "drift": drifts.iter().take(SIDE_BY_SIDE).map(|(server, drift)| side_by_side(server, drift)).collect::<Vec<_>>(),
        "drift_more": drifts.len().saturating_sub(SIDE_BY_SIDE),
        "access": snapshot.servers().iter().map(|server| access(server)).collect::<Vec<_>>(),
    })
}

/// Another one whenever [`details`] would say something else.
fn version(admin: &Admin, snapshot: &Snapshot) -> String {
    let mut hasher = DefaultHasher::new();
    admin.board.standing().generation.hash(&mut hasher);
    std::ptr::from_ref(snapshot).addr().hash(&mut hasher);
    for (server, drift) in drifts(snapshot) {
        (&server.name, &drift.label, &drift.offered).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

fn drifts(snapshot: &Snapshot) -> Vec<(&Server, Drift)> {
    let of = |server: &'_ Server| server.freshness.as_ref().map(|freshness| freshness.drifts()).unwrap_or_default();
    let servers = snapshot.servers().iter();
    servers.flat_map(|server| of(server).into_iter().map(|drift| (&**server, drift))).collect()
}

fn side_by_side(server: &Server, drift: &Drift) -> Value {
    let recorded = String::from_utf8_lossy(drift.recorded.canonical());
    let shown = recorded.get(..recorded.floor_char_boundary(SHOWN)).unwrap_or_default();
    // The other side was cut when it was kept.
    let long = |text: &str| text.len() > SHOWN.saturating_sub(4);
    json!({
        "server": &*server.name,
        "label": drift.label.to_string(),
        "recorded": pretty(shown),
        "offered": drift.offered.as_deref().map(pretty),
        "cut": long(&recorded) || drift.offered.as_deref().is_some_and(long),
    })
}

fn access(server: &Server) -> Value {
    let Matrix { roles, capabilities, rules } = Matrix::new(&server.policy, &server.prices, &server.scopes);
    let capabilities = capabilities.iter().map(|row| {
        let may = row.allowed.iter().enumerate().filter(|(_, allowed)| **allowed);
        json!({
            "label": &*row.capability,
            "permission": &*row.permission,
            "scopes": row.scopes,
            "roles": may.map(|(role, _)| role).collect::<Vec<_>>(),
        })
    });
    let rules = rules.iter().map(|rule| {
        let roles = rule.roles.iter().map(|role| &**role).collect::<Vec<_>>();
        json!({"who": &*rule.who, "roles": roles, "deny": rule.deny})
    });
    json!({
        "server": &*server.name,
        "capabilities": capabilities.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
        "roles": roles.iter().map(|role| &**role).collect::<Vec<_>>(),
    })
}
