//! Portcullis: the authorization layer for MCP behind Envoy.
//!
//! Envoy forwards; Portcullis decides. It is an external processor (`ext_proc`, a gRPC service) that Envoy asks about
//! every outbound MCP call: who is calling, may they use this tool, prompt or resource, and does what comes back fit
//! the answer. The rooms below stand in the order in which one call walks through them, front door to back door;
//! arrows go one way, down this list.
//!
//! | room | what it is for |
//! |---|---|
//! | `cli` | the command line: one file per command |
//! | [`doctor`] | what is unsafe in an Envoy configuration; pure |
//! | [`admin`] | the admin listener: health, readiness, metrics, status |
//! | [`config`] | the YAML file: model, load with all faults, JSON Schema |
//! | [`extproc`] | the front door: Envoy's protobuf in and out, one gRPC stream per HTTP exchange |
//! | [`exchange`] | the state machine of one HTTP exchange: events in, actions out, no clock and no socket |
//! | [`ladder`] | the rungs, one file each, in order |
//! | [`protocol`] | MCP: methods, routing headers, what a call reaches |
//! | [`identity`] | tokens, key sets, challenges, protected-resource metadata |
//! | [`upstream`] | our own calls to a server: its credential, listings of it, how fresh what it offers is |
//! | [`screen`] | what comes back: detectors, schema of answers, notices |
//! | [`record`] | definitions as approved: canonical form, digest, comparison, the record's files |
//! | [`policy`] | rules, roles, principal, prices, scopes, URI templates; pure |
//! | [`refusal`] | the closed enum of reasons; class, status, code, text; the frame |
//! | [`message`] | bytes to meaning: strict JSON reader, SSE framing, splicing |
//! | [`gates`] | external opinions on a call: ext_authz, our own gRPC contract, a judging model, CEL rules |
//! | [`explain`] | what would be decided about a call, and by which rung: drives an exchange without Envoy |
//! | [`telemetry`] | metrics, traces, the audit event of each decision, logs; the only room that knows OpenTelemetry |
#![forbid(unsafe_code)]
// Nothing in here may panic while a call is judged, nor cut a number short.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::cast_possible_truncation
    )
)]

pub mod admin;
pub mod config;
pub mod doctor;
pub mod exchange;
pub mod explain;
pub mod extproc;
pub mod gates;
pub mod identity;
pub mod ladder;
pub mod message;
pub mod policy;
pub mod protocol;
pub mod record;
pub mod refusal;
pub mod screen;
pub mod telemetry;
pub mod upstream;
