//! What the tests of this room share: keys made on the spot, tokens, a key server that counts.

use std::sync::{
    Arc, LazyLock, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::any};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey};
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::{Value, json};

pub(super) const ISSUER: &str = "https://auth.test";
pub(super) const RESOURCE: &str = "https://mcp.test/mcp";
/// The present, in all tests.
pub(super) const NOW: u64 = 1_800_000_000;

/// A signing key and its public half.
pub(super) struct Signer {
    algorithm: Algorithm,
    encoding: EncodingKey,
    pub(super) jwk: Value,
}

pub(super) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    pub(super) fn ec(id: &str) -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        Self::from_point(id, &pair, "P-256", Algorithm::ES256, 32)
    }

    pub(super) fn ec384(id: &str) -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        Self::from_point(id, &pair, "P-384", Algorithm::ES384, 48)
    }

    fn from_point(id: &str, pair: &KeyPair, curve: &str, algorithm: Algorithm, length: usize) -> Self {
        let point = pair.der_bytes();
        let jwk =
            json!({"kty": "EC", "crv": curve, "kid": id, "x": b64(&point[1..=length]), "y": b64(&point[length + 1..])});
        Self { algorithm, encoding: EncodingKey::from_ec_der(pair.serialized_der()), jwk }
    }

    pub(super) fn ed(id: &str) -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": b64(pair.der_bytes())});
        Self { algorithm: Algorithm::EdDSA, encoding: EncodingKey::from_ed_der(pair.serialized_der()), jwk }
    }

    /// One RSA key for all tests: making one is slow.
    pub(super) fn rsa(id: &str, algorithm: Algorithm) -> Self {
        static PAIR: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap());
        let (modulus, exponent) = rsa_public(PAIR.der_bytes());
        // The PKCS#1 key is all that follows the fixed PKCS#8 header of a 2048-bit RSA key.
        let encoding = EncodingKey::from_rsa_der(&PAIR.serialized_der()[26..]);
        let jwk = json!({"kty": "RSA", "kid": id, "n": b64(modulus), "e": b64(exponent)});
        Self { algorithm, encoding, jwk }
    }

    pub(super) fn id(&self) -> &str {
        self.jwk["kid"].as_str().unwrap()
    }

    /// A token with an honest header.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": format!("{:?}", self.algorithm), "kid": self.id(), "typ": "at+jwt"}), claims)
    }

    pub(super) fn token_with(&self, header: &Value, claims: &Value) -> String {
        self.sign(&header.to_string(), &claims.to_string())
    }

    /// A token of exactly these two texts.
    pub(super) fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", b64(header), b64(claims));
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &self.encoding, self.algorithm).unwrap();
        format!("{signed}.{signature}")
    }
}

/// Modulus and exponent of a DER `RSAPublicKey` of 2048 bits.
fn rsa_public(der: &[u8]) -> (&[u8], &[u8]) {
    // 30 82 xx xx | 02 82 01 01 00 <256 bytes> | 02 03 <3 bytes>
    (&der[9..265], &der[267..])
}

/// Claims of a token that every rule accepts.
pub(super) fn good_claims() -> Value {
    json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "user-1", "exp": NOW + 3600, "iat": NOW - 10,
        "email": "ann@acme.com", "email_verified": true, "scope": "mcp cases:read", "client_id": "client-7",
    })
}

/// `claims` with one member replaced, or removed when `value` is null.
pub(super) fn with(mut claims: Value, name: &str, value: Value) -> Value {
    let members = claims.as_object_mut().unwrap();
    match value {
        Value::Null => members.remove(name),
        value => members.insert(name.into(), value),
    };
    claims
}

pub(super) fn key_set(signers: &[&Signer]) -> Value {
    json!({"keys": signers.iter().map(|signer| signer.jwk.clone()).collect::<Vec<_>>()})
}

/// What [`FakeServer`] answers.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) cache_control: Option<&'static str>,
    pub(super) delay_ms: u64,
}

impl Answer {
    pub(super) fn json(body: &Value) -> Self {
        Self { status: 200, body: body.to_string(), cache_control: None, delay_ms: 0 }
    }

    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::json(&json!({})) }
    }
}

/// A request that [`FakeServer`] got.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) body: String,
}

type Answers = Arc<dyn Fn(&Seen) -> Answer + Send + Sync>;

/// An HTTP server on loopback that counts what it is asked.
pub(super) struct FakeServer {
    pub(super) url: String,
    inner: Arc<Inner>,
    task: tokio::task::JoinHandle<()>,
}

struct Inner {
    answers: Mutex<Answers>,
    count: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
}

impl FakeServer {
    pub(super) async fn start(answer: Answer) -> Self {
        let inner =
            Arc::new(Inner { answers: Mutex::new(always(answer)), count: AtomicUsize::new(0), seen: Mutex::default() });
        let app = Router::new().fallback(any(serve)).with_state(Arc::clone(&inner));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, inner, task }
    }

    pub(super) fn answer(&self, answer: Answer) {
        self.answer_by(move |_| answer.clone());
    }

    pub(super) fn answer_by(&self, answers: impl Fn(&Seen) -> Answer + Send + Sync + 'static) {
        *self.inner.answers.lock().unwrap() = Arc::new(answers);
    }

    /// How many requests came.
    pub(super) fn count(&self) -> usize {
        self.inner.count.load(Ordering::SeqCst)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn always(answer: Answer) -> Answers {
    Arc::new(move |_| answer.clone())
}

async fn serve(State(inner): State<Arc<Inner>>, request: axum::extract::Request) -> axum::response::Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let seen = Seen {
        path: parts.uri.to_string(),
        authorization: parts.headers.get("authorization").map(|value| value.to_str().unwrap().into()),
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    inner.count.fetch_add(1, Ordering::SeqCst);
    inner.seen.lock().unwrap().push(seen.clone());
    let answers = Arc::clone(&inner.answers.lock().unwrap());
    let answer = answers(&seen);
    tokio::time::sleep(std::time::Duration::from_millis(answer.delay_ms)).await;
    let mut response = (StatusCode::from_u16(answer.status).unwrap(), answer.body).into_response();
    if (300..400).contains(&answer.status) {
        response.headers_mut().insert("location", "/elsewhere".parse().unwrap());
    }
    if let Some(value) = answer.cache_control {
        response.headers_mut().insert("cache-control", value.parse().unwrap());
    }
    response
}
