//! The shipped sidecar configuration, with a stand-in for the verdict: where decided traffic goes, and that undecided goes nowhere.

use std::io::{Read as _, Write as _};

use tempfile::TempDir;

use crate::harness::assert_envoy_refused;
use crate::support::client::Connection;
use crate::support::envoy::{SIDECAR, with_verdict};
use crate::support::tls::Certificate;
use crate::support::{Answer, Envoy, Request, Upstream, fixture};

const HOST: &str = "vendor.example.com";

/// An HTTPS upstream and the authority that its caller trusts.
struct Vendor {
    upstream: Upstream,
    dir: TempDir,
}

impl Vendor {
    fn start(names: &[&str]) -> Self {
        let certificate = Certificate::new(names);
        let dir = tempfile::tempdir().expect("a temporary directory");
        certificate.write_pem(&dir.path().join("ca.pem"));
        Self { upstream: Upstream::start_tls(&certificate), dir }
    }

    /// The sidecar with this vendor behind `vendor.example.com`, and nobody on the `ext_proc` socket.
    fn sidecar(&self, config: &str) -> Envoy {
        let address = format!("address: 127.0.0.1, port_value: {}", self.upstream.port);
        let trusted = self.dir.path().join("ca.pem").display().to_string();
        let edits = [
            ("address: vendor.example.com, port_value: 443", address.as_str()),
            ("/etc/ssl/certs/ca-certificates.crt", trusted.as_str()),
            ("/run/portcullis/ext_proc.sock", "/nonexistent/ext_proc.sock"),
        ];
        Envoy::start(config, &edits)
    }
}

fn decided() -> String {
    with_verdict(SIDECAR, "{decided: true, server: cases}")
}

fn call() -> Request {
    fixture::post(&fixture::search()).authority(HOST)
}

fn local(port: u16) -> String {
    format!("localhost:{port}")
}

#[test]
fn undecided_traffic_goes_nowhere() {
    let vendor = Vendor::start(&[HOST, "localhost"]);
    let envoy = vendor.sidecar(SIDECAR);
    let authority = local(vendor.upstream.port);
    let websocket =
        Request::get("/chat").authority(&authority).add("connection", "upgrade").add("upgrade", "websocket");
    for request in [call(), Request::get("/page").authority(&authority), websocket] {
        assert_envoy_refused(&request.send(envoy.port), 503);
    }
    let tunnel = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
    let reply = Connection::open(envoy.port).and_then(|mut to| to.send_raw(tunnel.as_bytes(), false)).expect("a reply");
    assert_envoy_refused(&reply, 503);
    assert_eq!(vendor.upstream.count(), 0);
}

#[test]
fn a_decided_call_reaches_its_server_over_tls_however_its_host_is_spelled() {
    let vendor = Vendor::start(&[HOST, "localhost"]);
    let envoy = vendor.sidecar(&decided());
    for authority in [HOST, "VENDOR.example.com:80", "vendor.example.com."] {
        let reply = call().authority(authority).send(envoy.port);
        assert_eq!(reply.status, 200, "{authority}: {reply}");
        assert_eq!(vendor.upstream.last().header("host"), [HOST]);
    }
    // On the server's authority nothing leads past its route.
    let count = vendor.upstream.count();
    assert_eq!(Request::get("/other").authority(HOST).send(envoy.port).status, 404);
    let tunnel = format!("CONNECT {HOST}:443 HTTP/1.1\r\nhost: {HOST}:443\r\n\r\n");
    let reply = Connection::open(envoy.port).and_then(|mut to| to.send_raw(tunnel.as_bytes(), false)).expect("a reply");
    assert_eq!(reply.status, 404, "{reply}");
    assert_eq!(vendor.upstream.count(), count);
}

#[test]
fn a_server_that_cannot_prove_its_name_gets_nothing() {
    let vendor = Vendor::start(&["someone-else.example"]);
    let envoy = vendor.sidecar(&decided());
    assert_eq!(call().send(envoy.port).status, 503);
    assert_eq!(Request::get("/page").authority(&local(vendor.upstream.port)).send(envoy.port).status, 503);
    assert_eq!(vendor.upstream.count(), 0);
}

#[test]
fn other_traffic_passes_unbuffered() {
    let vendor = Vendor::start(&[HOST, "localhost"]);
    let envoy = vendor.sidecar(&decided());
    vendor.upstream.answer(Answer::text("text/plain", "a page"));
    let authority = local(vendor.upstream.port);
    let reply = Request::get("/page").authority(&authority).send(envoy.port);
    assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "{reply}");
    let upload = Request::new("PUT", "/upload").authority(&authority).body(vec![b'x'; 5 << 20]).send(envoy.port);
    assert_eq!((upload.status, vendor.upstream.last().body.len()), (200, 5 << 20), "{upload}");
    vendor.upstream.answer(
        Answer::raw("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
            .then("frames"),
    );
    let websocket =
        Request::get("/chat").authority(&authority).add("connection", "upgrade").add("upgrade", "websocket");
    assert_eq!(websocket.send(envoy.port).status, 101);
}

#[test]
fn a_decided_tunnel_carries_bytes() {
    let vendor = Vendor::start(&[HOST, "localhost"]);
    let envoy = vendor.sidecar(&decided());
    let far = Upstream::start();
    far.answer(Answer::text("text/plain", "through"));
    let authority = local(far.port);
    let mut tunnel = Connection::open(envoy.port).expect("a connection").stream;
    let opening = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
    tunnel.write_all(opening.as_bytes()).expect("it is sent");
    let mut buffer = [0; 4096];
    let count = tunnel.read(&mut buffer).expect("an answer");
    assert!(buffer[..count].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer[..count]));
    tunnel.write_all(&Request::get("/inside").bytes()).expect("it is sent");
    let count = tunnel.read(&mut buffer).expect("an answer");
    assert!(buffer[..count].ends_with(b"through"), "{}", String::from_utf8_lossy(&buffer[..count]));
    assert_eq!(far.last().path, "/inside");
}
