//! The configuration: one YAML file and the policy and record files it names, strict, with every fault at once.
//!
//! ```text
//! text ──tree──▶ located nodes ──deserialize──▶ model (serde structs) ──load──▶ Loaded { compiled, faults, warnings }
//! ```
//!
//! Nothing here runs while calls are judged: [`load`] makes immutable tables, and whoever reloads calls it again. A file
//! that does not load gives no tables at all, so there is nothing half-loaded that could decide.

mod cases;
mod deserialize;
mod document;
mod load;
mod located;
mod model;
pub mod recording;
mod schema;
mod tree;

pub use cases::{CaseSource, Cases, CasesSource, ClaimsSource, Expect};
pub use document::document;
pub use load::{Loaded, Recording, Serving, load};
pub use located::Located;
pub use model::*;
pub use schema::{Schema, schema};
