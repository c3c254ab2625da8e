//! Where Portcullis listens, and who may dial it.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

/// Where Portcullis listens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// The external processor that Envoy dials: `unix:/absolute/path` (a socket with mode 0600), or an address with TLS.
    pub ext_proc: ExtProcListener,
    /// Health, readiness, metrics and status over plain HTTP. Default none.
    pub admin: Option<AdminListener>,
}

/// The admin listener. It shows no secret and, but for its `page`, names no caller. It is for this host alone unless
/// that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminListener {
    /// IP address and port, as `127.0.0.1:9003`.
    #[schemars(with = "String")]
    pub address: SocketAddr,
    /// Allow an address that others than this host can reach, for probes and scrapers. There is no TLS and no login. Default
    /// false.
    #[serde(default)]
    pub allow_remote: bool,
    /// Names by which it may be called beside its address and `localhost`, as they stand in a `Host` header without the port.
    /// Whoever calls it by another name is turned away: it may be a web page whose name resolves here.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The page at `/`, which shows decisions, recent refusals, drift and who may call what, live. Unlike the rest of this
    /// listener it names callers. Default `off`: in a pod the agent can reach loopback too.
    #[serde(default)]
    pub page: AdminPage,
}

/// Whether the admin listener has a page for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdminPage {
    /// There is none, and nothing is kept for it.
    #[default]
    Off,
    /// At `/`.
    On,
}

/// The listener of the external processor.
#[derive(Clone, Debug)]
pub enum ExtProcListener {
    /// A Unix socket at this absolute path, mode 0600.
    Unix(PathBuf),
    /// TCP.
    Tcp(TcpListener),
}

/// A TCP listener. Whoever can dial it can read the upstream credential and forge attributes, hence the mutual TLS.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpListener {
    /// IP address and port, as `127.0.0.1:9002` or `[::1]:9002`.
    #[schemars(with = "String")]
    pub address: SocketAddr,
    /// Mutual TLS. Required unless `insecure: true`.
    pub tls: Option<ServerTls>,
    /// Listen without TLS, for trials. Refused where a server has a credential of its own. Default false.
    #[serde(default)]
    pub insecure: bool,
}

/// The listener's certificate and who is admitted. Paths are relative to the configuration file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// The certificate chain that Portcullis presents, PEM.
    pub cert: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// The certificate authority that Envoy's client certificate must be signed by, PEM.
    pub client_ca: PathBuf,
}

impl<'de> Deserialize<'de> for ExtProcListener {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListenerVisitor)
    }
}

struct ListenerVisitor;

impl<'de> Visitor<'de> for ListenerVisitor {
    type Value = ExtProcListener;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`unix:/absolute/path` or `{address: …, tls: {…}}`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ExtProcListener, E> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') && path.len() > 1 && !path.contains('\0') => {
                Ok(ExtProcListener::Unix(PathBuf::from(path)))
            }
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ExtProcListener, A::Error> {
        TcpListener::deserialize(MapAccessDeserializer::new(map)).map(ExtProcListener::Tcp)
    }
}

impl JsonSchema for ExtProcListener {
    fn schema_name() -> Cow<'static, str> {
        "ExtProcListener".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let tcp = generator.subschema_for::<TcpListener>();
        json_schema!({"oneOf": [{"type": "string", "pattern": "^unix:/.+$"}, tcp]})
    }
}
