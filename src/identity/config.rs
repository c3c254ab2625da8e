//! The `identity:` block of a server: where its callers' identity comes from.
//!
//! These are shapes only; [`super::Authenticator::build`] checks what they mean. The three sources that read claims
//! (`jwt`, `introspection`, `envoy_jwt`) share the keys of [`ClaimsSource`].

use std::{borrow::Cow, collections::BTreeMap, fmt, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

use crate::upstream::SecretSource;

/// Where the identity of a server's callers comes from: exactly one of these keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct IdentitySource {
    /// Bearer tokens that are JWTs, verified here against the issuer's key set.
    #[serde(default)]
    pub jwt: Option<JwtSource>,
    /// Bearer tokens that the authorization server is asked about (RFC 7662).
    #[serde(default)]
    pub introspection: Option<IntrospectionSource>,
    /// Claims that Envoy's `jwt_authn` filter verified, from its dynamic metadata; issuer, audience, expiry and subject
    /// are checked again.
    #[serde(default)]
    pub envoy_jwt: Option<EnvoyJwtSource>,
    /// The SPIFFE id in the client certificate that Envoy verified.
    #[serde(default)]
    pub peer: Option<PeerSource>,
    /// One fixed identity: a sidecar that serves one agent.
    #[serde(default, rename = "static")]
    pub fixed: Option<StaticSource>,
}

/// Scopes beyond `required_scopes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopesSource {
    /// Scope → the scopes it holds besides itself, for example `{admin: [cases:write]}`. Followed transitively.
    #[serde(default)]
    pub implies: BTreeMap<String, Vec<String>>,
    /// Scopes to name in the protected-resource metadata besides the required ones and those of capabilities.
    #[serde(default)]
    pub advertised: Vec<String>,
}

/// Declares a source that reads claims: its own keys and, after them, the keys that all of them have.
macro_rules! claims_source {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Audiences that are accepted besides the server's `resource` (any of them), for identity providers that
            /// put a client id or a GUID there.
            #[serde(default)]
            pub audiences: Vec<String>,
            /// Scopes that every call needs.
            #[serde(default)]
            pub required_scopes: Vec<String>,
            /// Scopes that hold other scopes, and scopes to advertise.
            #[serde(default)]
            pub scopes: ScopesSource,
            /// Whether a caller without an e-mail address is refused. `false` lets machine tokens in, by issuer and
            /// subject.
            #[serde(default = "yes")]
            pub require_email: bool,
            /// Whether an e-mail address that the issuer does not call verified refuses the caller. With `false` such
            /// a caller passes, but rules on `email` and `domain` still do not match an unverified address.
            #[serde(default = "yes")]
            pub require_email_verified: bool,
            /// Claim that holds the e-mail address.
            #[serde(default = "email_claim")]
            pub email_claim: String,
            /// Claim that says `true` when the address is verified.
            #[serde(default = "email_verified_claim")]
            pub email_verified_claim: String,
            /// The hosted domain (claim `hd`) that callers must have; any when left out.
            #[serde(default, deserialize_with = "crate::policy::written")]
            pub allowed_domain: Option<String>,
            /// How far the clocks of issuer and Portcullis may differ, at most 5m.
            #[serde(default)]
            pub leeway: Leeway,
        }

        impl $name {
            /// The keys that all sources of claims share.
            #[must_use]
            pub fn claims(&self) -> ClaimsSource<'_> {
                ClaimsSource {
                    audiences: &self.audiences,
                    require_email: self.require_email,
                    require_email_verified: self.require_email_verified,
                    email_claim: &self.email_claim,
                    email_verified_claim: &self.email_verified_claim,
                    allowed_domain: self.allowed_domain.as_deref(),
                    leeway_seconds: self.leeway.0,
                }
            }
        }
    };
}

claims_source! {
    /// JWT bearer tokens.
    pub struct JwtSource {
        /// The issuer (`iss`), compared byte for byte.
        pub issuer: String,
        /// The issuer's key set: an https URL or `{file: …}`. Left out, it is discovered from the issuer (RFC 8414,
        /// then `OpenID` Connect).
        #[serde(default)]
        pub jwks: Option<JwksSource>,
        /// Signature algorithms that are accepted. Asymmetric ones only.
        #[serde(default = "default_algorithms")]
        pub algorithms: Vec<String>,
        /// Accept only tokens that call themselves access tokens: `typ: at+jwt` (RFC 9068).
        #[serde(default)]
        pub require_typ: bool,
    }
}

claims_source! {
    /// Opaque or JWT bearer tokens that the authorization server is asked about.
    pub struct IntrospectionSource {
        /// The issuer: who vouches for the subject; an `iss` in the answer must be this one.
        pub issuer: String,
        /// The introspection endpoint, an https URL.
        pub endpoint: String,
        /// Our own credentials at that endpoint (HTTP Basic).
        pub client: ClientSource,
    }
}

claims_source! {
    /// Claims from Envoy's `jwt_authn` filter.
    pub struct EnvoyJwtSource {
        /// The issuer (`iss`), compared byte for byte.
        pub issuer: String,
        /// The key under which the `jwt_authn` provider puts the claims (`payload_in_metadata`).
        #[serde(default = "payload_key")]
        pub payload_key: String,
    }
}

/// Credentials of Portcullis as an OAuth client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSource {
    /// The client id.
    pub id: String,
    /// The client secret.
    pub secret: SecretSource,
}

/// The identity in the client certificate. Envoy must be configured to verify it (`trusted_ca`): an unverified
/// certificate says whatever its maker likes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerSource {
    /// Trust domains that are accepted; with this and `ids` left out, every verified SPIFFE id is.
    #[serde(default)]
    pub trust_domains: Vec<String>,
    /// SPIFFE ids that are accepted.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Scopes that every such caller holds.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// One fixed identity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticSource {
    /// Who the caller is (`sub`).
    pub subject: String,
    /// Who says so (`iss`).
    #[serde(default = "static_issuer")]
    pub issuer: String,
    /// E-mail address, taken as verified.
    #[serde(default)]
    pub email: Option<String>,
    /// Scopes that the caller holds.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// The keys that the sources of claims share, in one form.
#[derive(Clone, Copy, Debug)]
pub struct ClaimsSource<'a> {
    /// Audiences besides the resource.
    pub audiences: &'a [String],
    /// Refuse callers without an address.
    pub require_email: bool,
    /// Refuse callers with an unverified address.
    pub require_email_verified: bool,
    /// Name of the claim with the address.
    pub email_claim: &'a str,
    /// Name of the claim that says whether it is verified.
    pub email_verified_claim: &'a str,
    /// Value that `hd` must have.
    pub allowed_domain: Option<&'a str>,
    /// Clock difference that is forgiven, seconds.
    pub leeway_seconds: u64,
}

impl IdentitySource {
    /// Scopes that every call needs, in the order of the configuration. For `peer` and `static` these are the scopes
    /// that their callers hold anyway, so that capability scopes have a baseline to stand on.
    #[must_use]
    pub fn required_scopes(&self) -> &[String] {
        let configured =
            || self.peer.as_ref().map(|peer| &*peer.scopes).or(self.fixed.as_ref().map(|fixed| &*fixed.scopes));
        self.token_scopes().map(|(required, _)| required).or_else(configured).unwrap_or_default()
    }

    /// Scope hierarchy and advertised scopes; `None` for `peer` and `static`.
    #[must_use]
    pub fn scopes(&self) -> Option<&ScopesSource> {
        self.token_scopes().map(|(_, scopes)| scopes)
    }

    /// The issuer of the tokens; `None` for `peer` and `static`, whose callers cannot be told to get a token.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        let jwt = self.jwt.as_ref().map(|jwt| &*jwt.issuer);
        let introspection = || self.introspection.as_ref().map(|source| &*source.issuer);
        jwt.or_else(introspection).or_else(|| self.envoy_jwt.as_ref().map(|source| &*source.issuer))
    }

    fn token_scopes(&self) -> Option<(&[String], &ScopesSource)> {
        if let Some(source) = &self.jwt {
            return Some((&source.required_scopes, &source.scopes));
        }
        if let Some(source) = &self.introspection {
            return Some((&source.required_scopes, &source.scopes));
        }
        self.envoy_jwt.as_ref().map(|source| (&*source.required_scopes, &source.scopes))
    }
}

fn yes() -> bool {
    true
}

fn email_claim() -> String {
    "email".into()
}

fn email_verified_claim() -> String {
    "email_verified".into()
}

fn payload_key() -> String {
    "jwt_payload".into()
}

fn static_issuer() -> String {
    "static".into()
}

fn default_algorithms() -> Vec<String> {
    ["RS256", "PS256", "ES256", "ES384", "EdDSA"].map(String::from).into()
}

/// A clock difference such as `30s` or `1m`; whole seconds, at most five minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leeway(pub u64);

const MAX_LEEWAY: u64 = 300;

impl Default for Leeway {
    fn default() -> Self {
        Self(30)
    }
}

impl<'de> Deserialize<'de> for Leeway {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let seconds = match (text.strip_suffix('s'), text.strip_suffix('m')) {
            (Some(number), _) => number.parse().ok(),
            (_, Some(number)) => number.parse::<u64>().ok().and_then(|minutes| minutes.checked_mul(60)),
            _ => None,
        };
        let accepted = seconds.filter(|seconds| *seconds <= MAX_LEEWAY).map(Self);
        accepted
            .ok_or_else(|| de::Error::custom(format_args!("expected a time from 0s to 5m such as 30s, got {text:?}")))
    }
}

impl JsonSchema for Leeway {
    fn schema_name() -> Cow<'static, str> {
        "Leeway".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]+(s|m)$", "default": "30s"})
    }
}

/// Where a key set is read from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JwksSource {
    /// An https URL (http on loopback).
    Url(String),
    /// A local file, relative to the configuration file.
    File(PathBuf),
}

impl<'de> Deserialize<'de> for JwksSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = JwksSource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the key set's URL or `{file: …}`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<JwksSource, E> {
                Ok(JwksSource::Url(text.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JwksSource, A::Error> {
                let mut file = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "file" {
                        return Err(de::Error::unknown_field(&key, &["file"]));
                    }
                    if file.replace(map.next_value()?).is_some() {
                        return Err(de::Error::duplicate_field("file"));
                    }
                }
                file.map(JwksSource::File).ok_or_else(|| de::Error::missing_field("file"))
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

impl JsonSchema for JwksSource {
    fn schema_name() -> Cow<'static, str> {
        "Jwks".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [
                {"type": "string", "format": "uri"},
                {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"], "additionalProperties": false}
            ]
        })
    }
}
