//! The admin listener: what a person, a probe and a scraper may know of a running process. Plain HTTP/1.1, read only.
//!
//! | path | answers |
//! |---|---|
//! | `/healthz` | 200 while the process answers at all |
//! | `/readyz` | 200 when calls can be decided, else 503 and what is missing |
//! | `/metrics` | every counter, for Prometheus |
//! | `/status` | JSON: the configuration in force, the last reload that failed, each server's listing, drift, keys and gates |
//! | `/`, `/page.json` | with `listen.admin.page: on`, a page of all this and of recent refusals, and what it asks for |
//!
//! Nothing here is secret, and nothing but the page names a caller. It is for loopback all the same: beside an agent, loopback is
//! the agent's too, so what it could do to this listener is bounded ([`serve`]) and a web page that has its name resolve
//! here is turned away ([`host`]).

mod answer;
mod host;
mod page;
mod ready;
mod serve;
mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::config::reload::Board;
use crate::extproc::service::Service;

pub use host::Hosts;
pub use page::Page;
pub use ready::Readiness;
pub use serve::serve;

/// What the answers are made of.
pub struct Admin {
    /// The names by which this listener may be called.
    pub hosts: Hosts,
    /// Whether calls can be decided.
    pub readiness: Arc<Readiness>,
    /// What is in force, and what is wrong with what is not.
    pub board: Arc<Board>,
    /// The snapshot that calls are judged by.
    pub service: Service,
    /// Every metric in Prometheus' text format.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The page at `/`, where it is on.
    pub page: Option<Page>,
}
