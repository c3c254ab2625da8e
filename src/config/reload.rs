//! What a reload needs besides loading: noticing that a file changed, and telling how it went.
//!
//! ```text
//! Watch ──something happened──▶ Contents::read ──other than before──▶ load_after ──▶ Board::loaded | Board::refused
//! ```
//!
//! Editors rename, Kubernetes swaps a symlink of a folder, NFS and `subPath` mounts say nothing at all. So an event is only a
//! hint, and so is the slow poll beside it: what counts is whether the bytes are others.

mod board;
mod contents;
mod watch;

#[cfg(test)]
mod tests;

pub use board::{Board, Fault, Standing};
pub use contents::Contents;
pub use watch::Watch;
