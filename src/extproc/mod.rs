//! The room `extproc`.
