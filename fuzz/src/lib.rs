//! What Portcullis is held to whatever comes in: one function per kind of input, each of which panics when something is
//! wrong. libFuzzer calls them through `fuzz_targets/`; `tests/fuzz.rs` of the main crate calls the very same ones with the
//! corpus and with random bytes, so that a regression shows without a fuzzer.
#![allow(dead_code, reason = "the tests of the main crate include this file and use a part of it")]

pub mod configuration;
pub mod door;
pub mod exchange;
pub mod reader;
pub mod record;
pub mod seen;
pub mod sse;
pub mod template;

mod input;
mod known;
mod world;
