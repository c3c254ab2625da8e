//! Who is calling: tokens, key sets, challenges, protected-resource metadata.

pub mod challenge;
pub mod config;
pub mod metadata;

mod bearer;
mod cache;
mod fault;
mod fetch;

pub use fault::IdentityFault;
