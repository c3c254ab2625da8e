//! End to end: the shipped Envoy configurations on a real Envoy, the built `portcullis`, and peers that a test can make
//! misbehave. One program, because linking it is most of what it costs.
#![allow(
    clippy::cast_precision_loss,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "tests are written to be read, not to save an allocation, and count nothing near 2^52"
)]

mod admin;
mod arguments;
mod browser;
mod clients;
mod conformance;
mod doctor;
mod drain;
mod drift;
mod egress;
mod explain;
mod faults;
mod gates;
mod harness;
mod identities;
mod metadata;
mod overload;
mod page;
mod record;
mod reload;
mod rungs;
mod screening;
mod sidecar;
mod telemetry;
mod transport;
mod unanswered;
mod uploads;

#[path = "../support/mod.rs"]
mod support;
