//! Exporters: which collector each signal goes to, and how.
//!
//! `OTEL_*` variables win over the configuration, a signal's own over the general ones, as the specification has it.
//! Everything that talks to a collector runs on a small runtime of its own: a collector that hangs holds up telemetry and
//! nothing else.
//!
//! Spans and log records are encoded, queued and sent here ([`encode`], [`outbox`], [`client`]): one of each comes with every
//! decision, and the SDK spent half of a decision's CPU on them. Metrics go the SDK's way.

pub(super) mod client;
pub(super) mod encode;
mod http;
pub(super) mod outbox;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry_otlp::{
    MetricExporter, Protocol as Encoding, WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use self::http::Poster;
use super::settings::{Otlp, Protocol};
use crate::upstream::http::{self as outbound, HttpClient};

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

    /// The gRPC method that takes it.
    const fn method(self) -> &'static str {
        match self {
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
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
    /// Headers of each export.
    pub(super) headers: HeaderMap,
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
        let headers = find("HEADERS").map_or_else(|| Ok(HeaderMap::new()), |(place, text)| headers(&place, &text))?;
        Ok(Some(Self { endpoint, protocol, timeout, ca, headers }))
    }

    /// The channel of a gRPC exporter. It connects when it is first used, and again when it has to.
    fn channel(&self) -> Result<Channel, Fault> {
        let fault = |fault: tonic::transport::Error| Fault::Exporter(outbound::with_causes(&fault));
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

    /// The client of an HTTP exporter.
    fn http(&self) -> Result<HttpClient, Fault> {
        let tls = match &self.ca {
            None => None,
            Some(pem) => Some(
                outbound::trusting(pem)
                    .ok_or_else(|| Fault::Exporter("expected PEM certificates in `ca`, found none".to_owned()))?,
            ),
        };
        Ok(outbound::client(self.timeout, tls))
    }
}

/// `name=value` pairs between commas, values percent-encoded (the specification, after W3C Baggage). A fault names no value:
/// they are credentials.
fn headers(place: &str, text: &str) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    for (n, pair) in text.split(',').map(str::trim).enumerate().filter(|(_, pair)| !pair.is_empty()) {
        let read = || {
            let (name, value) = pair.split_once('=')?;
            let name = HeaderName::try_from(name.trim()).ok()?;
            Some((name, HeaderValue::try_from(decoded(value.trim())).ok()?))
        };
        let (name, value) = read().ok_or_else(|| Fault::Value {
            place: place.to_owned(),
            expected: "pairs of a header's name and its percent-encoded value, `name=value`, between commas",
            found: format!("pair {}", n + 1),
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Takes percent-encoding off. A `%` that two hexadecimal digits do not follow stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|digit| char::from(*digit).to_digit(16)).map(u8::try_from);
        rest = behind;
        match (first, digit(0), digit(1)) {
            (b'%', Some(Ok(high)), Some(Ok(low))) => {
                out.push(high << 4 | low);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => out.push(*first),
        }
    }
    out
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

/// An exporter of metrics to this target. Must be called within the runtime that it is to use.
pub(super) fn metrics(to: &Target, runtime: &tokio::runtime::Handle) -> Result<MetricExporter, Fault> {
    let builder = MetricExporter::builder();
    let built = match to.protocol {
        Protocol::Grpc => builder
            .with_tonic()
            .with_channel(to.channel()?)
            .with_endpoint(to.endpoint.as_str())
            .with_timeout(to.timeout)
            .build(),
        Protocol::HttpProtobuf => builder
            .with_http()
            .with_http_client(Poster::new(runtime.clone(), to.timeout, to.http()?))
            .with_protocol(Encoding::HttpBinary)
            .with_endpoint(to.endpoint.as_str())
            .with_timeout(to.timeout)
            .build(),
    };
    built.map_err(|fault| Fault::Exporter(fault.to_string()))
}
