//! Bytes to meaning: the strict one-pass JSON reader, the JSON-RPC envelope, exact numbers, SSE framing, splicing; protobuf.
//!
//! Nothing here knows MCP. Everything that the ladder asks about a body comes from one pass of [`json::Document::read`]
//! over the bytes that are forwarded; a body is never re-encoded, so what was judged is what the other side reads.

pub mod fold;
pub mod headers;
pub mod json;
pub mod number;
pub(crate) mod protobuf;
pub mod splice;
pub mod sse;
pub mod trace;
pub mod write;

#[cfg(test)]
pub(crate) mod testing;
