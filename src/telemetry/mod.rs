//! What an operator sees: the audit record of each decision, counters, logs.

pub mod audit;
pub mod counters;
pub mod log;

#[cfg(test)]
mod tests;

/// The contracts of `proto/`, generated.
pub mod contract {
    #![allow(missing_docs, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/portcullis.audit.v1.rs"));
}
