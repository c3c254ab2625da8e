//! An identity provider in this process: ES256 keys made on the spot, a JWKS over loopback HTTP, tokens of any content.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::fixture;
use super::http1::read_request;
use super::upstream::Seen;

struct Key {
    kid: String,
    signing: EncodingKey,
    public: Value,
}

impl Key {
    fn new(kid: &str) -> Self {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key pair");
        // Uncompressed point: 0x04, x, y, 32 bytes each.
        let (x, y) = pair.public_key_raw()[1..].split_at(32);
        let public = json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": kid, "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)});
        Self { kid: kid.into(), signing: EncodingKey::from_ec_der(&pair.serialize_der()), public }
    }

    fn set(&self) -> Value {
        json!({"keys": [self.public]})
    }
}

/// Id and secret of Portcullis at the introspection endpoint.
pub(crate) const CLIENT: (&str, &str) = ("portcullis", "client-secret");

struct Shared {
    key: Mutex<Key>,
    off: AtomicBool,
    stopped: AtomicBool,
    fetches: AtomicUsize,
    /// Opaque tokens and what the introspection endpoint says about them.
    opaque: Mutex<HashMap<String, Value>>,
}

/// A running identity provider; its listener ends when dropped.
pub(crate) struct Idp {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Idp {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared {
            key: Mutex::new(Key::new("key-1")),
            off: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            fetches: AtomicUsize::new(0),
            opaque: Mutex::default(),
        });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), shared) = (stream, of_thread.clone()) else {
                    continue;
                };
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Switched off, it closes every connection without an answer.
    pub(crate) fn switch(&self, on: bool) {
        self.shared.off.store(!on, Ordering::SeqCst);
    }

    /// Another key under this id from now on; the old one is no longer served.
    pub(crate) fn rotate(&self, kid: &str) {
        *self.shared.key.lock().expect("no signer panicked") = Key::new(kid);
    }

    /// How often the JWKS was served.
    pub(crate) fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// A token of the reader `ana@acme.com` with scope `mcp`, for an hour; `claims` replace or add to that, `null` removes.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let key = self.shared.key.lock().expect("no signer panicked");
        self.sign(&key, claims)
    }

    /// As [`Self::token`], signed with a key that the provider does not know, under the known id.
    pub(crate) fn forged(&self, claims: &Value) -> String {
        let kid = self.shared.key.lock().expect("no signer panicked").kid.clone();
        self.sign(&Key::new(&kid), claims)
    }

    /// An opaque token; `/introspect` tells what [`Self::token`] would have in it, to the client [`CLIENT`].
    pub(crate) fn opaque(&self, claims: &Value) -> String {
        let mut opaque = self.shared.opaque.lock().expect("no reader panicked");
        let token = format!("opaque-{}", opaque.len());
        let mut told = self.claims(claims);
        told["active"] = json!(true);
        opaque.insert(token.clone(), told);
        token
    }

    /// The key set as `/jwks.json` serves it.
    pub(crate) fn jwks(&self) -> Value {
        self.shared.key.lock().expect("no signer panicked").set()
    }

    fn claims(&self, claims: &Value) -> Value {
        let mut all = json!({
            "iss": self.issuer(), "aud": fixture::RESOURCE, "sub": "ana", "email": "ana@acme.com", "email_verified": true,
            "iat": now(), "exp": now() + 3600, "scope": "mcp", "client_id": "tests",
        });
        for (name, value) in claims.as_object().expect("claims are an object") {
            match (value, all.as_object_mut().expect("an object")) {
                (Value::Null, all) => all.remove(name),
                (value, all) => all.insert(name.clone(), value.clone()),
            };
        }
        all
    }

    fn sign(&self, key: &Key, claims: &Value) -> String {
        let all = self.claims(claims);
        let header = Header { kid: Some(key.kid.clone()), typ: Some("at+jwt".into()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, &all, &key.signing).expect("the token is signed")
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs()
}

impl Drop for Idp {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port)).map(|stream| stream.shutdown(Shutdown::Both));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut rest = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut rest) {
        if shared.off.load(Ordering::SeqCst) {
            return;
        }
        let (status, body) = if request.path == "/jwks.json" {
            shared.fetches.fetch_add(1, Ordering::SeqCst);
            ("200 OK", shared.key.lock().expect("no signer panicked").set().to_string())
        } else if request.path == "/introspect" {
            introspect(&request, shared)
        } else {
            ("404 Not Found", "{}".into())
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// RFC 7662, for the one client there is.
fn introspect(request: &Seen, shared: &Shared) -> (&'static str, String) {
    let basic = STANDARD.encode(format!("{}:{}", CLIENT.0, CLIENT.1));
    if request.header("authorization") != [format!("Basic {basic}")] {
        return ("401 Unauthorized", "{}".into());
    }
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let token = form.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or_default();
    let opaque = shared.opaque.lock().expect("no reader panicked");
    ("200 OK", opaque.get(token).cloned().unwrap_or(json!({"active": false})).to_string())
}
