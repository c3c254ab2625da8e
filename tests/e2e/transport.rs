//! The way from Envoy to Portcullis over TCP: mutual TLS or nothing that could be lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::assert_envoy_refused;
use crate::support::envoy::EDGE;
use crate::support::fixture::Ports;
use crate::support::tls::Authority;
use crate::support::{Envoy, Idp, Portcullis, Upstream, fixture, free_port, substitute};

/// Files of a configuration whose `ext_proc:` is `listener`.
fn configured(listener: &str, idp: u16, upstream: u16) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fixture::write_files(dir.path(), &[]);
    let config = fixture::configuration(dir.path(), &Ports { idp, upstream });
    let unix = format!("unix:{}/ext_proc.sock", dir.path().display());
    fs::write(dir.path().join("portcullis.yaml"), substitute(&config, &[(&unix, listener)])).expect("portcullis.yaml");
    dir
}

/// edge.yaml that dials Portcullis on this port, with this transport socket.
fn edge(upstream: u16, port: u16, transport_socket: &str) -> Envoy {
    let cluster = "    load_assignment: {cluster_name: portcullis,";
    let edits = [
        (
            "pipe: {path: /run/portcullis/ext_proc.sock}",
            format!("socket_address: {{address: 127.0.0.1, port_value: {port}}}"),
        ),
        (cluster, format!("{transport_socket}{cluster}")),
        ("port_value: 8000", format!("port_value: {upstream}")),
    ];
    Envoy::start(EDGE, &edits.each_ref().map(|(from, to)| (*from, to.as_str())))
}

/// A transport socket that trusts `dir`'s authority for `portcullis.test` and presents this certificate, or none.
fn mutual(dir: &Path, certificate: Option<&str>) -> String {
    let dir = dir.display();
    let own = certificate.map(|name| {
        format!("\n          tls_certificates: [{{certificate_chain: {{filename: {dir}/{name}.crt}}, private_key: {{filename: {dir}/{name}.key}}}}]")
    });
    format!(
        r#"    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: portcullis.test
        common_tls_context:
          alpn_protocols: [h2]
          validation_context: {{trusted_ca: {{filename: {dir}/ca.crt}}, match_typed_subject_alt_names: [{{san_type: DNS, matcher: {{exact: portcullis.test}}}}]}}{}
"#,
        own.unwrap_or_default()
    )
}

#[test]
fn only_envoys_certificate_opens_the_listener() {
    let (idp, upstream, port) = (Idp::start(), Upstream::start(), free_port());
    let listener =
        format!("{{address: \"127.0.0.1:{port}\", tls: {{cert: server.crt, key: server.key, client_ca: ca.crt}}}}");
    let dir = configured(&listener, idp.port, upstream.port);
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.write_pem(&dir.path().join("ca.crt"));
    for (name, authority) in [("server", &ours), ("envoy", &ours), ("stranger", &theirs)] {
        let issued = authority.issue(&[&format!("{}.test", name.replace("server", "portcullis"))], None);
        issued.write_pem(&dir.path().join(format!("{name}.crt")), &dir.path().join(format!("{name}.key")));
    }
    let _portcullis = Portcullis::start_tcp(&dir.path().join("portcullis.yaml"), port);
    let call = fixture::post(&fixture::search()).bearer(&idp.token(&serde_json::json!({})));
    let strangers = [mutual(dir.path(), None), mutual(dir.path(), Some("stranger")), String::new()];
    for transport_socket in strangers {
        let envoy = edge(upstream.port, port, &transport_socket);
        assert_envoy_refused(&call.send(envoy.port), 503);
    }
    assert_eq!(upstream.count(), 0);
    let envoy = edge(upstream.port, port, &mutual(dir.path(), Some("envoy")));
    let reply = call.send(envoy.port);
    assert_eq!((reply.status, upstream.count()), (200, 1), "{reply}");
}

#[test]
fn an_open_port_and_a_credential_do_not_go_together() {
    let check = |listener: &str| {
        let dir = configured(listener, 1, 1);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        let output =
            command.arg("check").arg("--config").arg(dir.path().join("portcullis.yaml")).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = check("{address: \"127.0.0.1:9002\", insecure: true}");
    assert!(code == Some(1) && said.contains("portcullis.yaml:2:") && said.contains("credential"), "{code:?}: {said}");
    let (code, said) = check("{address: \"127.0.0.1:9002\"}");
    assert!(code == Some(1) && said.contains("portcullis.yaml:2:") && said.contains("tls"), "{code:?}: {said}");
}
