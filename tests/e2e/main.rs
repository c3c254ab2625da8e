//! End to end: the shipped Envoy configurations on a real Envoy, the built `portcullis`, and peers that a test can make
//! misbehave. One program, because linking it is most of what it costs.

mod harness;
mod rungs;
mod sidecar;

#[path = "../support/mod.rs"]
mod support;
