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

use std::os::linux::net::SocketAddrExt as _;
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

/// A loopback port that nobody listens on and that is this process's alone until it ends, for a listener that comes later or
/// never. The kernel gives it to nobody who asks it for any port, and no other test gets it from here.
pub(crate) fn free_port() -> u16 {
    let kernels = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("the kernel's own ports");
    let first: u16 = kernels.split_whitespace().next().and_then(|port| port.parse().ok()).expect("the first of them");
    let below = 10_000..first;
    assert!(below.len() > 1_000, "expected room for tests below the kernel's own ports {kernels:?}");
    // Another place to begin for each process, so that claims seldom meet.
    let begin = std::process::id() as usize * 7 % below.len();
    let mut ports = below.clone().cycle().skip(begin).take(below.len());
    ports.find(|port| claim(*port)).expect("a port that nobody claims")
}

/// Whether the port became this process's. The claim is an abstract socket: it lives where the port does, in the network
/// namespace, and ends with the process.
fn claim(port: u16) -> bool {
    let name = format!("portcullis-tests/{port}");
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).expect("a name");
    let Ok(held) = std::os::unix::net::UnixListener::bind_addr(&address) else { return false };
    std::mem::forget(held);
    std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The checkout's root.
pub(crate) fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}
