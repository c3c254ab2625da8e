//! The demo's identity provider: a key made on the spot, its JWKS over HTTP on loopback, and tokens signed with it.
//!
//! It has no login page: the demo asks it for tokens directly, as if two people had signed in.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;
use tokio::net::TcpListener;

/// How long a token of the demo is good for: a working day, so that the printed commands keep working.
const LIFETIME: Duration = Duration::from_hours(12);
const KEY_ID: &str = "demo-key";
const JWKS_PATH: &str = "/jwks.json";

/// Someone a token can be made for.
#[derive(Debug)]
pub(super) struct Person {
    /// The `sub` claim.
    pub(super) sub: &'static str,
    /// The `email` claim; the provider vouches for it (`email_verified`).
    pub(super) email: &'static str,
    /// The `groups` claim.
    pub(super) groups: &'static [&'static str],
}

/// The issuer of the demo's tokens.
pub(super) struct IdentityProvider {
    key: EncodingKey,
    jwks: Bytes,
    issuer: String,
    audience: String,
}

impl IdentityProvider {
    /// Make a key for an issuer on this loopback port, whose tokens are meant for `audience`.
    pub(super) fn new(port: u16, audience: String) -> anyhow::Result<Self> {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| anyhow::anyhow!("could not generate the demo's ES256 key: the random generator failed"))?;
        let key = EncodingKey::from_ec_der(pkcs8.as_ref());
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).context("could not derive the demo's JWK")?;
        jwk.common.key_id = Some(KEY_ID.to_owned());
        let jwks = serde_json::to_vec(&JwkSet { keys: vec![jwk] }).context("could not write the demo's JWKS")?;
        Ok(Self { key, jwks: jwks.into(), issuer: format!("http://127.0.0.1:{port}"), audience })
    }

    /// A bearer token for this person, with `scope` as the consent that was given.
    pub(super) fn token(&self, person: &Person, scope: &str) -> anyhow::Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(KEY_ID.to_owned());
        let claims = json!({
            "iss": self.issuer,
            "aud": self.audience,
            "sub": person.sub,
            "iat": now.as_secs(),
            "exp": (now + LIFETIME).as_secs(),
            "email": person.email,
            "email_verified": true,
            "groups": person.groups,
            "scope": scope,
            "client_id": "demo",
        });
        jsonwebtoken::encode(&header, &claims, &self.key).context("could not sign a token of the demo")
    }

    /// Serve the JWKS on this listener until the runtime ends.
    pub(super) fn serve(&self, listener: TcpListener) {
        let jwks = self.jwks.clone();
        tokio::spawn(async move {
            // An accept error is one connection's (reset before it was accepted): the next one may work.
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                let jwks = jwks.clone();
                let service = service_fn(move |request| {
                    let answer = answer(&request, &jwks);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
    }

    /// The JWKS document as served.
    #[cfg(test)]
    pub(super) fn jwks(&self) -> &[u8] {
        &self.jwks
    }
}

fn answer(request: &Request<Incoming>, jwks: &Bytes) -> Response<Full<Bytes>> {
    if request.uri().path() == JWKS_PATH {
        let mut response = Response::new(Full::new(jwks.clone()));
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        return response;
    }
    let mut response =
        Response::new(Full::new(Bytes::from_static(b"the demo's identity provider has /jwks.json only\n")));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
