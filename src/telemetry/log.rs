//! Structured logs on standard error; standard output belongs to the audit records.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging. `RUST_LOG` chooses what is logged; `info` without it. A second call changes nothing.
pub fn start() {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy();
    let started = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
    drop(started);
}
