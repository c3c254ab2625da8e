//! Who is calling: tokens, key sets, challenges, protected-resource metadata.

pub mod config;
