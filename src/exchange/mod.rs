//! The room `exchange`.
