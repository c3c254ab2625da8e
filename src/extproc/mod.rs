//! The front door: Envoy's protobuf in, Envoy's protobuf out. Nothing here knows MCP policy.
//!
//! Envoy opens one gRPC stream per HTTP request. [`service`] drives an `Exchange` with what comes in and performs what
//! it asks for; [`request`] and [`reply`] translate; [`wire`] is as much of Envoy's contract as they need; [`listen`] owns
//! sockets and HTTP/2 bounds.

pub(crate) mod codec;
pub mod listen;
mod reply;
mod request;
pub mod service;
pub mod wire;
