//! As much of Envoy's external processing contract as is read and written here, from `proto/door/ext_proc.proto`.
//!
//! Of what a decision used to cost beside itself, building Envoy's whole messages was the largest part: a string for the
//! name and one for the value of each header, hash maps of attributes and metadata that are asked for one key.

#![allow(missing_docs, clippy::all, clippy::pedantic)]

include!(concat!(env!("OUT_DIR"), "/envoy.service.ext_proc.v3.rs"));
