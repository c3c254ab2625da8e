//! Our own calls to a server, and what we present to it.
//!
//! [`secret`] reads and follows secrets; [`credential`] turns one into the `Authorization` of a forwarded call.
//! [`client`] lists what a server offers; [`book`] keeps what is known about each recorded capability, and [`freshness`]
//! lists again when that is too old to decide by (ladder.md, rung 15).

pub mod book;
pub mod client;
pub mod credential;
pub mod freshness;
pub(crate) mod http;
pub mod secret;

#[cfg(test)]
mod tests;

pub use book::{Sighting, Verdict};
pub use client::{Client, ListingFault};
pub use credential::{Credential, CredentialSource};
pub use freshness::Freshness;
pub use secret::{Secret, SecretFault, SecretSource};
