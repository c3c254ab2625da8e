//! `/status`: what is in force and how each server stands, as JSON. No secret, no principal, nothing that a caller sent.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::ladder::{Kind, Server};

use super::Admin;

/// How it stands now.
pub(super) fn status(admin: &Admin) -> Value {
    let (standing, snapshot) = (admin.board.standing(), admin.service.snapshot());
    let time = |at: SystemTime| humantime::format_rfc3339_seconds(at).to_string();
    let fault = standing.fault.as_ref().map(|fault| json!({"at": time(fault.at), "faults": fault.faults}));
    let held = snapshot.held_answers();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": admin.readiness.missing().is_empty(),
        "missing": admin.readiness.missing(),
        "configuration": {
            "generation": standing.generation,
            "digest": standing.digest,
            "loaded_at": time(standing.loaded_at),
            "last_fault": fault,
            "needs_restart": standing.needs_restart,
        },
        // A count that only grows is a leak.
        "tasks": tokio::runtime::Handle::try_current().map(|runtime| runtime.metrics().num_alive_tasks()).ok(),
        "held_answers": {"bytes": held.held(), "most": held.most()},
        "servers": snapshot.servers().iter().map(|server| one(server)).collect::<Vec<_>>(),
    })
}

fn one(server: &Server) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let keys = server.authenticator.keys_fetched_at();
    let keys = keys.map(|fetched_at| json!({"age_seconds": fetched_at.map(|at| now.saturating_sub(at))}));
    let gates: Vec<Value> = server
        .gates
        .states(Instant::now())
        .map(|(name, asked)| json!({"name": name, "state": if asked { "asked" } else { "resting" }}))
        .collect();
    let freshness = server.freshness.as_ref();
    let listing = freshness
        .and_then(|freshness| freshness.last_listing())
        .map(|(age, good)| json!({"age_seconds": age.as_secs(), "result": if good { "ok" } else { "failed" }}));
    json!({
        "name": &*server.name,
        "kind": match server.kind { Kind::Mcp => "mcp", Kind::Http => "http" },
        "mode": if server.shadow { "shadow" } else { "enforce" },
        "capabilities": server.record.len(),
        "keys": keys,
        "last_listing": listing,
        "drift": freshness.map(|freshness| freshness.drift()).unwrap_or_default(),
        "gates": gates,
    })
}
