//! As much of Envoy's external processing contract as is read and written here, straight from and to its bytes
//! (`envoy/service/ext_proc/v3/external_processor.proto`; the numbers of its fields stand where they are used).
//!
//! Of what a decision used to cost beside itself, building Envoy's messages was the largest part: a string for the name
//! and one for the value of each header, maps of attributes and metadata that are asked for one key, and on the way back
//! a tree of small messages, measured once for each of their levels. Here a header is two places in the received bytes, and a
//! reply is written as it stands. Tests hold both against Envoy's own types.

mod codec;
mod read;
mod write;

pub use codec::Codec;

pub use generated::external_processor_server;

#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "the gRPC service is generated, by build.rs")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/envoy.service.ext_proc.v3.ExternalProcessor.rs"));
}
