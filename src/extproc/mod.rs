//! The front door: Envoy's protobuf in, Envoy's protobuf out. Nothing here knows MCP policy.
//!
//! Envoy opens one gRPC stream per HTTP request. [`service`] drives an `Exchange` with what comes in and performs what
//! it asks for; [`wire`] reads and writes as much of Envoy's contract as that takes; [`listen`] owns sockets and HTTP/2
//! bounds.

pub mod listen;
pub mod service;
pub mod wire;
