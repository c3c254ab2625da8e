//! MCP 2026-07-28 as an authorizing intermediary needs it: methods, routing headers, the envelope, what a call reaches.

pub mod envelope;
pub mod keys;
pub mod method;
pub mod routing;
pub mod rpc;
pub mod target;
pub mod version;

#[cfg(test)]
mod tests;

pub use method::Method;
pub use rpc::{Id, Message};
pub use target::OwnedTarget;
