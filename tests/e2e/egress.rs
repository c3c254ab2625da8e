//! The shipped sidecar configuration with Portcullis behind it: an agent's traffic, MCP and everything else.

use std::fs;
use std::io::{Read as _, Write as _};

use serde_json::json;
use tempfile::TempDir;

use crate::support::client::Connection;
use crate::support::envoy::SIDECAR;
use crate::support::fixture::Ports;
use crate::support::tls::Certificate;
use crate::support::{Answer, Envoy, Idp, Portcullis, Request, Upstream, fixture, substitute};

const HOST: &str = "vendor.example.com";

/// An agent's sidecar, the MCP vendor, a plain API that is judged, and the rest of the world.
pub(crate) struct World {
    pub(crate) envoy: Envoy,
    pub(crate) portcullis: Portcullis,
    pub(crate) vendor: Upstream,
    api: Upstream,
    elsewhere: Upstream,
    idp: Idp,
    /// Where Portcullis's own questions go, past Envoy: in production the vendor.
    _listings: Upstream,
    _dir: TempDir,
}

impl World {
    /// With substitutions in portcullis.yaml.
    fn start(edits: &[(&str, &str)]) -> Self {
        Self::with(edits, &[], None)
    }

    /// As [`Self::start`], with substitutions in sidecar.yaml, and with the vendor on this port in place of its own.
    pub(crate) fn with(edits: &[(&str, &str)], envoy_edits: &[(&str, &str)], before: Option<u16>) -> Self {
        let certificate = Certificate::new(&[HOST, "localhost"]);
        let dir = tempfile::tempdir().expect("a temporary directory");
        certificate.write_pem(&dir.path().join("ca.pem"));
        let [vendor, api, elsewhere] = [(); 3].map(|()| Upstream::start_tls(&certificate));
        api.answer(Answer::text("text/plain", "the api"));
        elsewhere.answer(Answer::text("text/plain", "a page"));
        let idp = Idp::start();
        fixture::write_files(dir.path(), &[]);
        let listings = Upstream::start();
        let ports = Ports { idp: idp.port, upstream: listings.port };
        let config = fixture::configuration(dir.path(), &ports);
        let plain = format!(
            "- name: api\n  kind: http\n  match: {{authority: \"localhost:{0}\", path: /api}}\n  resource: https://localhost:{0}/api\n  identity: {{jwt: {{issuer: \"{1}\", jwks: \"{1}/jwks.json\"}}}}\ntelemetry:\n",
            api.port,
            idp.issuer()
        );
        let config = substitute(&config, &[("unmatched: deny", "unmatched: pass"), ("telemetry:\n", &plain)]);
        let file = dir.path().join("portcullis.yaml");
        fs::write(&file, substitute(&config, edits)).expect("portcullis.yaml");
        let socket = dir.path().join("ext_proc.sock");
        let portcullis = Portcullis::start(&file, &socket);
        let address = format!("address: 127.0.0.1, port_value: {}", before.unwrap_or(vendor.port));
        let places = [
            ("address: vendor.example.com, port_value: 443", address),
            ("/etc/ssl/certs/ca-certificates.crt", dir.path().join("ca.pem").display().to_string()),
            ("/run/portcullis/ext_proc.sock", socket.display().to_string()),
        ];
        let sidecar = substitute(SIDECAR, envoy_edits);
        let envoy = Envoy::start(&sidecar, &places.each_ref().map(|(from, to)| (*from, to.as_str())));
        Self { envoy, portcullis, vendor, api, elsewhere, idp, _listings: listings, _dir: dir }
    }

    fn reader(&self) -> String {
        self.idp.token(&json!({}))
    }

    pub(crate) fn search(&self) -> Request {
        fixture::post(&fixture::search()).authority(HOST).bearer(&self.reader())
    }

    fn tunnel(&self, authority: &str) -> Vec<u8> {
        let mut stream = Connection::open(self.envoy.port).expect("a connection").stream;
        let opening = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
        stream.write_all(opening.as_bytes()).expect("it is sent");
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).expect("an answer");
        let mut said = buffer[..count].to_vec();
        if said.starts_with(b"HTTP/1.1 200") {
            stream.write_all(&Request::get("/inside").bytes()).expect("it is sent");
            let count = stream.read(&mut buffer).expect("an answer");
            said.extend_from_slice(&buffer[..count]);
        }
        said
    }
}

fn authority(upstream: &Upstream) -> String {
    format!("localhost:{}", upstream.port)
}

#[test]
fn mcp_is_judged_and_the_rest_passes_unread() {
    let world = World::start(&[]);
    let port = world.envoy.port;
    let reply = world.search().send(port);
    assert_eq!((reply.status, world.vendor.count()), (200, 1), "{reply}");
    assert_eq!(world.vendor.last().header("authorization"), [format!("Bearer {}", fixture::CREDENTIAL)]);
    let export = fixture::call("export_cases", json!({}));
    let refused = fixture::post(&export).authority(HOST).bearer(&world.reader());
    assert_eq!(refused.send(port).json()["error"]["data"]["error"], "policy.unpriced");
    for request in [Request::get("/other"), Request::get("/mcp/"), Request::get("//mcp"), Request::get("/mcp")] {
        let reply = request.authority(HOST).send(port);
        assert!((400..500).contains(&reply.status), "{reply}");
    }
    assert_eq!(world.vendor.count(), 1);

    let elsewhere = authority(&world.elsewhere);
    let reply = Request::get("/page").authority(&elsewhere).add("authorization", "Bearer own").send(port);
    assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "{reply}");
    assert_eq!(world.elsewhere.last().header("authorization"), ["Bearer own"]);
    for upload in [
        Request::new("PUT", "/upload").body(vec![b'x'; 20 << 20]),
        Request::new("PUT", "/upload").pieces(&[&vec![b'x'; 20 << 20]], &[]),
    ] {
        let reply = upload.authority(&elsewhere).send(port);
        assert_eq!((reply.status, world.elsewhere.last().body.len()), (200, 20 << 20), "{reply}");
    }
    world.elsewhere.answer(Answer::raw(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nframes",
    ));
    let websocket =
        Request::get("/chat").authority(&elsewhere).add("connection", "upgrade").add("upgrade", "websocket");
    assert_eq!(websocket.send(port).status, 101);
}

#[test]
fn tunnels_pass_but_not_to_a_guarded_host() {
    let world = World::start(&[]);
    let far = Upstream::start();
    far.answer(Answer::text("text/plain", "through"));
    let said = world.tunnel(&format!("127.0.0.1:{}", far.port));
    assert!(said.ends_with(b"through"), "{}", String::from_utf8_lossy(&said));
    let count = far.count();
    // Known to Envoy, to Portcullis by its exact address, and to Portcullis under another port.
    for guarded in [format!("{HOST}:443"), authority(&world.api), format!("localhost:{}", far.port)] {
        let said = world.tunnel(&guarded);
        assert!(said.starts_with(b"HTTP/1.1 4"), "{guarded}: {}", String::from_utf8_lossy(&said));
    }
    assert_eq!((world.vendor.count(), world.api.count(), far.count()), (0, 0, count));
}

#[test]
fn plain_http_that_is_judged_takes_an_identity() {
    let world = World::start(&[]);
    let port = world.envoy.port;
    let get = Request::get("/api").authority(&authority(&world.api));
    let reply = get.send(port);
    assert!(reply.status == 401 && reply.header("www-authenticate").is_some(), "{reply}");
    let token = world.idp.token(&json!({"aud": format!("https://localhost:{}/api", world.api.port)}));
    for stranger in [world.idp.forged(&json!({})), world.reader()] {
        assert_eq!(get.clone().bearer(&stranger).send(port).status, 401);
    }
    // The rest of a guarded authority is nobody's, whatever `unmatched` says.
    for path in ["/other", "/api/", "/api/../x", "//api"] {
        let reply = get.clone().path(path).bearer(&token).send(port);
        assert_eq!((reply.status, &reply.json()["error"]), (403, &json!("route.unmatched")), "{path}: {reply}");
    }
    assert_eq!(world.api.count(), 0);
    let put = Request::new("PUT", "/api?a=1").authority(&authority(&world.api)).body(vec![b'x'; 5 << 20]);
    for request in [get, put] {
        let reply = request.bearer(&token).send(port);
        assert_eq!((reply.status, reply.text().as_str()), (200, "the api"), "{reply}");
        assert!(world.api.last().header("authorization").is_empty(), "{:?}", world.api.last().headers);
    }
    assert_eq!(world.api.last().body.len(), 5 << 20);
    assert_eq!(world.portcullis.audit(9).last().expect("a record")["server"], "api");
}

#[test]
fn a_verdict_for_another_server_does_not_open_the_route() {
    // Portcullis knows the route by another server's name: it allows, and the lock of the route does not fit. Envoy's 403 then
    // comes by as the answer to the call, and Portcullis reads it as a server's.
    let world = World::start(&[("- name: cases\n", "- name: others\n")]);
    let reply = world.search().send(world.envoy.port);
    assert!(reply.status == 502 && reply.json()["error"].is_object(), "{reply}");
    assert_eq!(world.vendor.count(), 0);
    assert_eq!(world.envoy.access_log(1)[0]["server"], "others");
    assert_eq!(world.envoy.stat("http.egress.rbac.denied"), 1);
}

#[test]
fn only_mcp_leaves_where_the_rest_is_denied() {
    let world = World::start(&[("unmatched: pass", "unmatched: deny")]);
    let port = world.envoy.port;
    assert_eq!(world.search().send(port).status, 200);
    let elsewhere = authority(&world.elsewhere);
    for request in
        [Request::get("/page"), Request::get("/page").add("connection", "upgrade").add("upgrade", "websocket")]
    {
        let reply = request.authority(&elsewhere).send(port);
        assert_eq!((reply.status, &reply.json()["error"]), (403, &json!("route.unmatched")), "{reply}");
    }
    let said = world.tunnel(&elsewhere);
    assert!(said.starts_with(b"HTTP/1.1 403"), "{}", String::from_utf8_lossy(&said));
    assert_eq!(world.elsewhere.count(), 0);
}
