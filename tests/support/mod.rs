//! What the end-to-end tests stand on: a real Envoy, a scriptable upstream, an identity provider, the built `portcullis`, and
//! [`Stack`], which starts all four.
//!
//! Everything is blocking and on threads: a test reads from top to bottom, and a peer that misbehaves is a few bytes on a
//! socket. Child processes die with the thread that started them (`PR_SET_PDEATHSIG`), so a killed test leaves nothing behind.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod child;
pub(crate) mod client;
pub(crate) mod collector;
pub(crate) mod envoy;
pub(crate) mod fixture;
pub(crate) mod h2;
pub(crate) mod http1;
pub(crate) mod idp;
pub(crate) mod mcp;
pub(crate) mod portcullis;
pub(crate) mod sdk_server;
pub(crate) mod sdk_streams;
pub(crate) mod stack;
pub(crate) mod tls;
pub(crate) mod upstream;

use std::time::{Duration, Instant};

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use self::{
    client::{Reply, Request},
    envoy::Envoy,
    idp::Idp,
    portcullis::Portcullis,
    stack::Stack,
    upstream::{Answer, Seen, Upstream},
};

/// Replaces each `from` in `text` by its `to`; a `from` that is not there fails the test, so that no test silently runs on a
/// file that no longer says what it thinks it says.
pub(crate) fn substitute(text: &str, edits: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in edits {
        assert!(
            text.contains(from),
            "expected {from:?} in the text to substitute, found it nowhere; the file has changed:\n{text}"
        );
        text = text.replace(from, to);
    }
    text
}

/// Asks `probe` every 10 ms until it answers, at most `patience` long.
pub(crate) fn wait_for<T>(patience: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + patience;
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A loopback port that nobody listens on, for a listener that comes later or never. A socket that is bound to it and never
/// listens keeps it until this process ends: connections are refused, the kernel gives it to nobody who asks for any port, and
/// who names it may listen on it, for listeners reuse addresses as this socket does.
pub(crate) fn free_port() -> u16 {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an address that may be reused");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a loopback port");
    let port = socket.local_addr().expect("its address").port();
    std::mem::forget(socket);
    port
}

/// The checkout's root.
pub(crate) fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}
