//! What we present to a server: the service credential that takes the place of the caller's token.
//!
//! [`secret`] reads and follows secrets; [`credential`] turns one into the `Authorization` of a forwarded call.

pub mod credential;
pub mod secret;

#[cfg(test)]
mod tests;

pub use credential::{Credential, CredentialSource};
pub use secret::{Secret, SecretFault, SecretSource};
