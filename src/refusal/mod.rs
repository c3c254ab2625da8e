//! The room `refusal`.
