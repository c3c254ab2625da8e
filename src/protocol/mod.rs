//! The room `protocol`.
