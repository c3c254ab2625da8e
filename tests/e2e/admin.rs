//! The admin listener: what it says, and to whom.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::support::{Reply, Request, Stack, fixture, free_port, substitute, wait_for};

const PATIENCE: Duration = Duration::from_secs(30);

/// A stack with an admin listener, and its port.
fn stack(edits: &[(&str, &str)], keys: bool) -> (Stack, u16) {
    let port = free_port();
    let stack = Stack::made(
        None,
        |config, parts| {
            parts.idp.switch(keys);
            let listen = format!(
                "/ext_proc.sock\n  admin: {{address: 127.0.0.1:{port}, hosts: [portcullis.internal]}}\nunmatched"
            );
            substitute(&substitute(&config, &[("/ext_proc.sock\nunmatched", &listen)]), edits)
        },
        |edge, _| edge,
    );
    (stack, port)
}

fn get(port: u16, path: &str) -> Reply {
    Request::get(path).authority("localhost").send(port)
}

fn status(port: u16) -> Value {
    get(port, "/status").json()
}

/// Waits until `/readyz` answers with this.
#[track_caller]
fn await_ready(port: u16, wanted: u16) -> Reply {
    let asked = || Some(get(port, "/readyz")).filter(|reply| reply.status == wanted);
    wait_for(PATIENCE, asked).unwrap_or_else(|| panic!("expected /readyz to answer {wanted}: {}", get(port, "/readyz")))
}

/// What gRPC health says of the external processor: 1 serving, 2 not.
fn health(stack: &Stack) -> i32 {
    let socket: PathBuf = stack.dir.path().join("ext_proc.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let endpoint =
            tonic::transport::Endpoint::from_shared(format!("unix:{}", socket.display())).expect("an endpoint");
        let mut client = HealthClient::new(endpoint.connect().await.expect("a connection"));
        let service = "envoy.service.ext_proc.v3.ExternalProcessor".to_owned();
        client.check(HealthCheckRequest { service }).await.expect("an answer").into_inner().status
    })
}

#[test]
fn readiness_waits_for_the_keys_and_goes_off_before_the_end() {
    let (mut stack, port) = stack(&[("unmatched: deny", "unmatched: deny\ndrain: {delay: 5s, timeout: 5s}")], false);
    let reply = await_ready(port, 503);
    assert!(reply.text().contains("server cases: the issuer's keys"), "{reply}");
    assert_eq!((get(port, "/healthz").status, health(&stack)), (200, 2));
    stack.idp.switch(true);
    await_ready(port, 200);
    wait_for(PATIENCE, || (health(&stack) == 1).then_some(())).expect("serving");
    stack.allows(&stack.request(&fixture::search()));
    // The end is told at once, and while whoever looks takes notice, calls are served.
    stack.portcullis.signal(Signal::SIGTERM);
    let reply = await_ready(port, 503);
    assert!(reply.text().contains("ending"), "{reply}");
    assert_eq!((get(port, "/healthz").status, health(&stack)), (200, 2));
    stack.allows(&stack.request(&fixture::search()));
    assert!(stack.portcullis.await_end(PATIENCE).success());
}

#[test]
fn status_and_metrics_tell_what_is_and_nothing_secret() {
    let (stack, port) = stack(&[], true);
    await_ready(port, 200);
    stack.allows(&stack.request(&fixture::search()));
    stack.refuses(&stack.request(&fixture::call("update_case", json!({"id": "7"}))), "policy.not_permitted");
    let told = status(port);
    let configuration = &told["configuration"];
    assert_eq!((&configuration["generation"], &configuration["last_fault"]), (&json!(1), &Value::Null), "{told:#}");
    let server = &told["servers"][0];
    assert_eq!((&server["name"], &server["mode"], &server["drift"]), (&json!("cases"), &json!("enforce"), &json!([])));
    assert!(server["keys"]["age_seconds"].is_u64() && server["last_listing"]["result"] == "ok", "{told:#}");
    // A fault is shown until the next good load, and a definition that changed is named.
    let file = stack.dir.path().join("policy.yaml");
    let good = std::fs::read_to_string(&file).expect("the policy");
    std::fs::write(&file, "roles: [").expect("written");
    wait_for(PATIENCE, || status(port)["configuration"]["last_fault"]["faults"][0].is_string().then_some(()))
        .expect("a fault");
    assert_eq!(status(port)["configuration"]["generation"], 1);
    std::fs::write(&file, format!("{good}# again\n")).expect("written");
    wait_for(PATIENCE, || (status(port)["configuration"]["generation"] == 2).then_some(())).expect("a reload");
    let after = status(port);
    assert_eq!(after["configuration"]["last_fault"], Value::Null);
    assert_ne!(after["configuration"]["digest"], configuration["digest"]);
    let metrics = get(port, "/metrics").text();
    for line in [
        "portcullis_decisions_total{capability=\"tool:search_cases\",decision=\"allow\",enforced=\"true\",mcp_method_name=\"tools/call\",server=\"cases\"} 1",
        "portcullis_decisions_total{capability=\"tool:update_case\",decision=\"refuse\",enforced=\"true\",mcp_method_name=\"tools/call\",reason=\"policy.not_permitted\",server=\"cases\"} 1",
        "portcullis_config_generation 2",
        "portcullis_config_reloads_total{result=\"ok\"} 1",
        "portcullis_config_reloads_total{result=\"failed\"} 1",
    ] {
        assert!(metrics.lines().any(|told| told == line), "expected {line} in\n{metrics}");
    }
    for secret in [fixture::CREDENTIAL, "ana@acme.com", stack.reader().as_str(), "printer"] {
        assert!(!after.to_string().contains(secret) && !metrics.contains(secret), "{secret}");
    }
}

#[test]
fn a_foreign_host_another_method_and_a_slow_caller_get_nothing() {
    let (_stack, port) = stack(&[], true);
    for (host, wanted) in [
        ("localhost", 200),
        (&*format!("127.0.0.1:{port}"), 200),
        ("portcullis.internal", 200),
        ("rebound.example", 421),
        (&*format!("rebound.example:{port}"), 421),
        ("", 421),
    ] {
        assert_eq!(Request::get("/healthz").authority(host).send(port).status, wanted, "{host}");
    }
    let twice = Request::get("/status").authority("localhost").add("host", "rebound.example").send(port);
    assert_eq!(twice.status, 421, "{twice}");
    let target = Request::get("http://rebound.example/status").authority("localhost").send(port);
    assert_eq!(target.status, 421, "{target}");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"] {
        let reply = Request::new(method, "/status").authority("localhost").send(port);
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{method}: {reply}");
    }
    let head = Request::new("HEAD", "/status").authority("localhost").send(port);
    assert_eq!((head.status, head.body.len()), (200, 0), "{head}");
    assert_eq!(get(port, "/").status, 404);
    let long = Request::get("/healthz").authority("localhost").add("x-long", &"x".repeat(64 * 1024)).try_send(port);
    assert!(long.is_none_or(|reply| reply.status >= 400), "a head of 64 KiB is not read");
    // More slow callers than there is room for: each is shut out, and then others get their turn.
    let mut slow: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: loc").expect("written");
            stream
        })
        .collect();
    assert_eq!(get(port, "/healthz").status, 200);
    let first = slow.first_mut().expect("a connection");
    first.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).expect("an end");
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
}
