//! The room `ladder`.
