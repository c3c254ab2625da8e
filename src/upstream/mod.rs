//! The room `upstream`.
