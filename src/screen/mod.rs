//! What comes back: the structured answer held to its schema, text searched for what should not be in it, and what the
//! model is told about it.
//!
//! Everything here is a pure function of one answer. [`scan`] says what a value holds ([`invisible`], [`addressed`], the
//! operator's own patterns), [`output`] whether a structured answer is the one that was approved, [`notice`] writes the
//! words of both into the answer, byte for byte the rest. Which answer gets which is rung 21, in `ladder`.

pub mod addressed;
pub mod config;
pub mod invisible;
pub mod notice;
pub mod output;
mod prefilter;
pub mod scan;

pub use config::ScreenSource;
pub use scan::{Detectors, Found};
