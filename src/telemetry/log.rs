//! Structured logs on standard error; standard output belongs to the audit events.

#[cfg(test)]
mod tests;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// What is logged when nothing else is said. OpenTelemetry's own notes are loud at `info`.
const DEFAULT: &str = "info,opentelemetry=warn,opentelemetry_sdk=warn,opentelemetry-otlp=warn";
/// The variable that wins.
const VARIABLE: &str = "RUST_LOG";

/// Changes what is logged while the process runs.
#[derive(Clone)]
pub struct Handle(reload::Handle<EnvFilter, Registry>);

/// Starts logging: what `RUST_LOG` says, else `info`. A second call starts nothing, and its handle changes nothing.
pub fn start() -> Handle {
    let filter = std::env::var(VARIABLE).ok().and_then(|text| parse(&text).ok());
    let (filter, handle) = reload::Layer::new(filter.unwrap_or_else(standard));
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(std::io::stderr);
    let started = tracing_subscriber::registry().with(filter).with(lines).try_init();
    drop(started);
    Handle(handle)
}

impl Handle {
    /// Logs what `filter` says from now on, in the syntax of `RUST_LOG`: `debug`, `info,portcullis::gates=debug`.
    ///
    /// # Errors
    /// The filter cannot be read, and nothing has changed.
    pub fn set(&self, filter: &str) -> Result<(), String> {
        let filter = parse(filter)?;
        self.0.reload(filter).map_err(|fault| format!("logging has ended: {fault}"))
    }

    /// Takes the configuration's `telemetry.log`; without one, the default. `RUST_LOG` wins over both, also later.
    ///
    /// # Errors
    /// The filter cannot be read, and nothing has changed.
    pub fn configure(&self, filter: Option<&str>) -> Result<(), String> {
        if std::env::var(VARIABLE).is_ok_and(|text| parse(&text).is_ok()) {
            return Ok(());
        }
        self.set(filter.unwrap_or(DEFAULT))
    }
}

/// Reads a filter.
///
/// # Errors
/// What is wrong with it.
pub fn parse(filter: &str) -> Result<EnvFilter, String> {
    if filter.trim().is_empty() {
        return Err("expected a level or directives such as `info,portcullis=debug`, found nothing".to_owned());
    }
    EnvFilter::builder().with_default_directive(LevelFilter::ERROR.into()).parse(filter).map_err(|fault| {
        format!("expected a level or directives such as `info,portcullis=debug`, found {filter:?}: {fault}")
    })
}

fn standard() -> EnvFilter {
    parse(DEFAULT).unwrap_or_else(|_| EnvFilter::new("info"))
}
