//! The ladder: one file per rung, in the order in which a call climbs them (ladder.md §2).
//!
//! Header phase: [`route`], [`metadata`], [`method`], [`headers`], [`origin`], [`token`], [`scope`], [`body`]. Body
//! phase: [`message`], [`envelope`], [`listed`], [`policy`], [`permission`], [`scope`] again, [`definition`],
//! [`arguments`], [`gate`]. On the way back: [`answer`], [`listing`], [`discover`], [`screen`]. A rung is a pure function of
//! what it is given; the order is driven by `exchange`. Nothing here knows a socket, a clock or Envoy's protobuf.

pub mod answer;
pub mod arguments;
pub mod body;
pub mod budget;
pub mod definition;
pub mod discover;
pub mod envelope;
pub mod forward;
pub mod gate;
pub mod head;
pub mod headers;
pub mod listed;
pub mod listing;
pub mod message;
pub mod metadata;
pub mod method;
pub mod origin;
pub mod patience;
pub mod permission;
pub mod policy;
pub mod route;
pub mod scope;
pub mod screen;
pub mod server;
pub mod token;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use head::Head;
pub use patience::EnvoyTimeouts;
pub use server::{Kind, MetadataKeys, Server, Snapshot, Unmatched};
