//! The room `identity`.
