//! Exporters: which collector each signal goes to, and how.
//!
//! `OTEL_*` variables win over the configuration, a signal's own over the general ones, as the specification has it.
//! Everything that talks to a collector runs on a small runtime of its own: a collector that hangs holds up telemetry and
//! nothing else.

mod http;
#[cfg(test)]
mod tests;

use std::time::Duration;

use opentelemetry_otlp::{
    LogExporter, MetricExporter, Protocol as Encoding, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
    WithTonicConfig as _,
};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use super::settings::{Otlp, Protocol};
use http::Poster;

/// For one export, when nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why no exporter can be made.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// What a variable or the configuration says means nothing.
    #[error("{place}: expected {expected}, found {found:?}")]
    Value {
        /// Which variable or key.
        place: String,
        /// What it should say.
        expected: &'static str,
        /// What it says.
        found: String,
    },
    /// A file cannot be read.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read {path}: {fault}")]
    Certificate {
        /// The file.
        path: String,
        /// Why.
        fault: std::io::Error,
    },
    /// The exporter itself says no.
    #[error("the OTLP exporter cannot be made: {0}")]
    Exporter(String),
}

/// One of the three signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Metrics,
    Traces,
    Logs,
}

impl Signal {
    const fn upper(self) -> &'static str {
        match self {
            Self::Metrics => "METRICS",
            Self::Traces => "TRACES",
            Self::Logs => "LOGS",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Metrics => "v1/metrics",
            Self::Traces => "v1/traces",
            Self::Logs => "v1/logs",
        }
    }
}

/// Where one signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The URL that is requested; for gRPC without a path.
    pub(super) endpoint: String,
    pub(super) protocol: Protocol,
    pub(super) timeout: Duration,
    pub(super) ca: Option<Vec<u8>>,
}

/// A variable of the environment that is set and not empty, which the specification treats as not set.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl Target {
    /// The target of a signal; `None` where there is none. `read` reads a variable.
    pub(super) fn resolve(
        signal: Signal,
        configured: Option<&Otlp>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Fault> {
        let off = read("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || read(&format!("OTEL_{}_EXPORTER", signal.upper())).is_some_and(|text| text == "none");
        if off {
            return Ok(None);
        }
        let own = |what: &str| format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.upper());
        let general = |what: &str| format!("OTEL_EXPORTER_OTLP_{what}");
        let find =
            |what: &str| [own(what), general(what)].into_iter().find_map(|name| read(&name).map(|text| (name, text)));
        let protocol = match find("PROTOCOL") {
            Some((place, text)) => protocol(place, &text)?,
            None => configured.map(|otlp| otlp.protocol).unwrap_or_default(),
        };
        let base = match (find("ENDPOINT"), configured) {
            // A signal's own endpoint is taken as it stands.
            (Some((place, text)), _) if place == own("ENDPOINT") => (place, text, true),
            (Some((place, text)), _) => (place, text, false),
            (None, Some(otlp)) => ("telemetry.otlp.endpoint".to_owned(), otlp.endpoint.clone(), false),
            (None, None) => return Ok(None),
        };
        let (place, text, whole) = base;
        let endpoint = endpoint(&text).ok_or(Fault::Value { place, expected: "an http or https URL", found: text })?;
        let endpoint = match protocol {
            Protocol::HttpProtobuf if !whole => format!("{}/{}", endpoint.trim_end_matches('/'), signal.path()),
            _ => endpoint,
        };
        let timeout = match find("TIMEOUT") {
            Some((place, text)) => match text.parse() {
                Ok(millis) => Duration::from_millis(millis),
                Err(_) => return Err(Fault::Value { place, expected: "milliseconds", found: text }),
            },
            None => configured.and_then(|otlp| otlp.timeout).unwrap_or(TIMEOUT),
        };
        let ca = match find("CERTIFICATE") {
            Some((_, path)) => Some(std::fs::read(&path).map_err(|fault| Fault::Certificate { path, fault })?),
            None => configured.and_then(|otlp| otlp.ca.clone()),
        };
        Ok(Some(Self { endpoint, protocol, timeout, ca }))
    }

    /// The channel of a gRPC exporter. It connects when it is first used, and again when it has to.
    fn channel(&self) -> Result<Channel, Fault> {
        let fault = |fault: tonic::transport::Error| Fault::Exporter(crate::upstream::http::with_causes(&fault));
        let mut endpoint = Endpoint::from_shared(self.endpoint.clone())
            .map_err(fault)?
            .timeout(self.timeout)
            .connect_timeout(self.timeout);
        if self.endpoint.starts_with("https:") {
            let tls = match &self.ca {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_webpki_roots(),
            };
            endpoint = endpoint.tls_config(tls).map_err(fault)?;
        }
        Ok(endpoint.connect_lazy())
    }

    fn poster(&self, runtime: &tokio::runtime::Handle) -> Result<Poster, Fault> {
        let tls = match &self.ca {
            None => None,
            Some(pem) => Some(
                crate::upstream::http::trusting(pem)
                    .ok_or_else(|| Fault::Exporter("expected PEM certificates in `ca`, found none".to_owned()))?,
            ),
        };
        Ok(Poster::new(runtime.clone(), self.timeout, tls))
    }
}

fn protocol(place: String, text: &str) -> Result<Protocol, Fault> {
    match text {
        "grpc" => Ok(Protocol::Grpc),
        "http/protobuf" => Ok(Protocol::HttpProtobuf),
        _ => Err(Fault::Value { place, expected: "`grpc` or `http/protobuf`", found: text.to_owned() }),
    }
}

/// The URL, when it is one that can be exported to.
pub(crate) fn endpoint(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then(|| text.to_owned())
}

macro_rules! exporter {
    ($name:ident, $exporter:ident) => {
        /// An exporter to this target. Must be called within the runtime that it is to use.
        pub(super) fn $name(to: &Target, runtime: &tokio::runtime::Handle) -> Result<$exporter, Fault> {
            let builder = $exporter::builder();
            let built = match to.protocol {
                Protocol::Grpc => builder
                    .with_tonic()
                    .with_channel(to.channel()?)
                    .with_endpoint(to.endpoint.as_str())
                    .with_timeout(to.timeout)
                    .build(),
                Protocol::HttpProtobuf => builder
                    .with_http()
                    .with_http_client(to.poster(runtime)?)
                    .with_protocol(Encoding::HttpBinary)
                    .with_endpoint(to.endpoint.as_str())
                    .with_timeout(to.timeout)
                    .build(),
            };
            built.map_err(|fault| Fault::Exporter(fault.to_string()))
        }
    };
}

exporter!(metrics, MetricExporter);
exporter!(spans, SpanExporter);
exporter!(logs, LogExporter);
