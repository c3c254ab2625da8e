//! The room `message`.
