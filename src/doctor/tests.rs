//! The shipped configurations have no fault; each fault that is put into one is found, where it is, and nothing else.

mod chain;
mod edit;
mod forms;
mod processor;
mod rest;
mod routes;
mod seeds;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::guarded::{Guard, Guarded};
use super::{Finding, examine, read};
use crate::extproc::listen::Address;
use crate::ladder::server::Matcher;

const EDGE: &str = include_str!("../../deploy/envoy/edge.yaml");
const SIDECAR: &str = include_str!("../../deploy/envoy/sidecar.yaml");

/// What the shipped configurations stand before.
fn guarded() -> Guarded {
    let cases = Guard {
        name: "cases".into(),
        matcher: Matcher::Route(vec!["cases".into(), "cases-stream".into()]),
        scheme: "https".into(),
        request: Some(1024 * 1024),
        gates: Duration::ZERO,
        passthrough: false,
        credential: true,
        envoy_jwt: false,
        peer: false,
    };
    let address = Address::Unix("/run/portcullis/ext_proc.sock".into());
    Guarded { servers: vec![cases], passes: false, max_streams: 16_384, address }
}

fn parsed(text: &str) -> Value {
    read(Path::new("envoy.yaml"), text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Ids and places of the findings.
fn found(configuration: &Value, guarded: Option<&Guarded>) -> Vec<(&'static str, String)> {
    let findings = examine(configuration, guarded, None);
    findings.into_iter().map(|Finding { id, place, .. }| (id, place)).collect()
}
