//! Who may dial the listener.

use super::Folder;
use crate::extproc::listen::Address;

const LISTEN: &str = "{ext_proc: unix:/run/portcullis.sock}";

fn certificates(folder: &Folder) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    folder.write("cert.pem", &made.cert.pem());
    folder.write("key.pem", &made.signing_key.serialize_pem());
}

#[test]
fn tcp_takes_mutual_tls() {
    let folder = Folder::new();
    certificates(&folder);
    let tls = "{ext_proc: {address: '127.0.0.1:9002', tls: {cert: cert.pem, key: key.pem, client_ca: cert.pem}}}";
    folder.replace("portcullis.yaml", LISTEN, tls);
    assert_eq!(folder.faults(), [""; 0]);
    let serving = folder.load().serving.expect("something to serve");
    assert_eq!(serving.address, Address::Tcp("127.0.0.1:9002".parse().expect("an address")));
    assert!(serving.tls.expect("TLS").cert.starts_with(b"-----BEGIN CERTIFICATE"));
}

#[test]
fn each_pem_file_must_hold_what_it_should() {
    let folder = Folder::new();
    certificates(&folder);
    let tls = "{ext_proc: {address: '127.0.0.1:9002', tls: {cert: key.pem, key: cert.pem, client_ca: gone.pem}}}";
    folder.replace("portcullis.yaml", LISTEN, tls);
    let faults = folder.faults();
    assert_eq!(faults.len(), 3, "{faults:#?}");
    assert!(faults[0].starts_with("gone.pem:1:1: "), "{faults:#?}");
    assert!(
        faults[1].starts_with("portcullis.yaml:1:60: listen.ext_proc.tls.cert: expected a PEM certificate"),
        "{faults:#?}"
    );
    assert!(
        faults[2].starts_with("portcullis.yaml:1:74: listen.ext_proc.tls.key: expected a PEM private key"),
        "{faults:#?}"
    );
}

#[test]
fn tcp_without_tls_is_refused_where_a_credential_could_be_read() {
    let told = |listen: &str, credential: &str| {
        let folder = Folder::new();
        folder.replace("portcullis.yaml", LISTEN, listen).replace(
            "portcullis.yaml",
            "{bearer: {file: token}}",
            credential,
        );
        let faults = folder.faults();
        assert!(faults.len() < 2, "{faults:#?}");
        faults.into_iter().next().unwrap_or_default()
    };
    let bearer = "{bearer: {file: token}}";
    let plain = told("{ext_proc: {address: '127.0.0.1:9002'}}", "none");
    assert!(plain.starts_with("portcullis.yaml:1:30: listen.ext_proc.address: expected `tls:"), "{plain}");
    let insecure = "{ext_proc: {address: '127.0.0.1:9002', insecure: true}}";
    let exposed = told(insecure, bearer);
    assert!(
        exposed.starts_with("portcullis.yaml:1:58: listen.ext_proc.insecure: ") && exposed.contains("`cases`"),
        "{exposed}"
    );
    assert_eq!(told(insecure, "none"), "");
    assert_eq!(told(insecure, "passthrough"), "");
}

#[test]
fn an_admin_listener_that_others_can_reach_is_asked_for_and_its_page_is_warned_of() {
    let listen = |more: &str| {
        let folder = Folder::new();
        let admin = format!("{{ext_proc: unix:/run/portcullis.sock, admin: {{address: '10.0.0.1:9003'{more}}}}}");
        folder.replace("portcullis.yaml", LISTEN, &admin);
        folder
    };
    let faults = listen("").faults();
    assert!(faults.len() == 1 && faults[0].contains("listen.admin.address: expected a loopback address"), "{faults:?}");
    let folder = listen(", allow_remote: true");
    assert_eq!((folder.faults(), folder.warnings()), (vec![], vec![]));
    let folder = listen(", allow_remote: true, page: on");
    assert_eq!(folder.faults(), [""; 0]);
    let warnings = folder.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("listen.admin.page: the page names callers"), "{warnings:?}");
    assert!(folder.load().serving.expect("something to serve").telemetry.recent);
}
