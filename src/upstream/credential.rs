//! What we present to an upstream server in the caller's place.
//!
//! The caller's own token never goes upstream (MCP 2026-07-28, authorization: token passthrough is forbidden) unless
//! the operator says that both are one resource: `passthrough`.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Weak},
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

use super::secret::{Secret, SecretFault, SecretSource};

/// The `credential:` key: `none` (default), `passthrough`, or `{bearer: {file: …}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CredentialSource {
    /// The caller's `Authorization` is removed and nothing takes its place.
    #[default]
    None,
    /// The caller's `Authorization` goes upstream as it came.
    Passthrough,
    /// `Authorization: Bearer` with this secret.
    Bearer(SecretSource),
}

/// A credential that is ready for use.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Remove the caller's `Authorization`.
    None,
    /// Keep the caller's `Authorization`.
    Passthrough,
    /// Replace the caller's `Authorization`.
    Bearer(Bearer),
}

/// A bearer credential whose header value is made once per secret, not once per call.
#[derive(Clone)]
pub struct Bearer {
    secret: Secret,
    header: Arc<ArcSwap<HeaderValue>>,
}

impl CredentialSource {
    /// Reads the secret that it names. A relative file is taken from `base`, the folder of the configuration file.
    ///
    /// # Errors
    /// [`SecretFault`]: the secret cannot be used.
    pub fn load(&self, base: &Path) -> Result<Credential, SecretFault> {
        Ok(match self {
            Self::None => Credential::None,
            Self::Passthrough => Credential::Passthrough,
            Self::Bearer(source) => Credential::Bearer(Bearer::new(source.read(base)?)?),
        })
    }
}

impl Credential {
    /// The `Authorization` value to send upstream; `None` for the two kinds that send none of ours.
    ///
    /// Costs one atomic load and a reference count; the value is marked sensitive.
    #[must_use]
    pub fn header_value(&self) -> Option<HeaderValue> {
        match self {
            Self::Bearer(bearer) => Some(HeaderValue::clone(&bearer.header.load())),
            Self::None | Self::Passthrough => None,
        }
    }

    /// Whether the caller's own `Authorization` stays on the call.
    #[must_use]
    pub fn is_passthrough(&self) -> bool {
        matches!(self, Self::Passthrough)
    }

    /// The future that follows a bearer's file for as long as the credential lives; `None` when nothing can change.
    ///
    /// It ends by itself once the last clone of the credential is gone, so a reload leaves nothing behind.
    #[must_use]
    pub fn watch(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        match self {
            Self::Bearer(bearer) if bearer.secret.is_watchable() => Some(bearer.clone().watch()),
            _ => None,
        }
    }
}

impl Bearer {
    fn new(secret: Secret) -> Result<Self, SecretFault> {
        let header = header_value(&secret)
            .ok_or(SecretFault::Unusable { origin: format!("{secret:?}"), problem: "cannot stand in a header" })?;
        Ok(Self { secret, header: Arc::new(ArcSwap::from_pointee(header)) })
    }

    fn watch(self) -> impl Future<Output = ()> + Send + 'static {
        let Self { secret, header } = self;
        let header: Weak<_> = Arc::downgrade(&header);
        secret.watch(move |secret| {
            let Some(header) = header.upgrade() else { return false };
            if let Some(value) = header_value(secret) {
                header.store(Arc::new(value));
            }
            true
        })
    }
}

fn header_value(secret: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", secret.current())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").field("secret", &self.secret).finish_non_exhaustive()
    }
}

const EXPECTED: &str = "`none`, `passthrough` or `{bearer: {file: …}}` (or `env:`)";

impl<'de> Deserialize<'de> for CredentialSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = CredentialSource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CredentialSource, E> {
                match text {
                    "none" => Ok(CredentialSource::None),
                    "passthrough" => Ok(CredentialSource::Passthrough),
                    // Not repeated in the message: someone may have put the secret itself here.
                    _ => Err(E::custom(format_args!("expected {EXPECTED}, got another text"))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CredentialSource, A::Error> {
                let mut bearer = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "bearer" {
                        return Err(de::Error::unknown_field(&key, &["bearer"]));
                    }
                    if bearer.replace(map.next_value()?).is_some() {
                        return Err(de::Error::duplicate_field("bearer"));
                    }
                }
                bearer.map(CredentialSource::Bearer).ok_or_else(|| de::Error::missing_field("bearer"))
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

impl JsonSchema for CredentialSource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Credential".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let secret = generator.subschema_for::<SecretSource>();
        json_schema!({
            "description": "What is presented upstream in the caller's place: nothing, the caller's own token, or a service token.",
            "oneOf": [
                {"enum": ["none", "passthrough"]},
                {"type": "object", "properties": {"bearer": secret}, "required": ["bearer"], "additionalProperties": false}
            ]
        })
    }
}
