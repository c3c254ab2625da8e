use std::path::Path;
use std::time::Duration;

use super::*;
use crate::config::deserialize::load;
use crate::config::tree::Node;
use crate::policy::{OneOrMany, PolicySource};
use crate::screen::config::DetectorsSource;
use crate::upstream::{CredentialSource, SecretSource};

const LISTEN: &str = "listen: {ext_proc: unix:/run/x.sock}\n";

/// Reads a configuration whose one server has `more` besides what it must have.
fn read(more: &str) -> Result<Configuration, Vec<String>> {
    let server = "servers:\n- name: cases\n  match: {route: cases}\n  resource: https://mcp.acme.com/mcp\n  identity: {static: {subject: a}}\n";
    raw(&format!("{LISTEN}{server}{more}"))
}

fn raw(text: &str) -> Result<Configuration, Vec<String>> {
    let (root, faults) = Node::parse(text);
    assert!(faults.is_empty(), "{faults:?}");
    let mut root = root.expect("a document");
    let (value, faults) = load::<Configuration>(&mut root);
    let told = faults.iter().map(|fault| format!("{}:{} {}", fault.place.line, fault.place.column, fault.message));
    if faults.is_empty() { Ok(value.expect("loads")) } else { Err(told.collect()) }
}

fn server(more: &str) -> Server {
    let mut configuration = read(more).unwrap_or_else(|faults| panic!("{faults:?}"));
    configuration.servers.remove(0)
}

/// The only fault.
fn fault(more: &str) -> String {
    let faults = read(more).expect_err("a fault");
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].clone()
}

#[test]
fn everything_else_has_a_default() {
    let configuration = read("").expect("loads");
    assert_eq!(configuration.unmatched, Unmatched::Deny);
    assert_eq!((configuration.worker_threads.get(), configuration.max_streams.get()), (1, 16_384));
    assert_eq!(configuration.telemetry.audit.stdout, AuditStdout::Json);
    let server = &configuration.servers[0];
    assert_eq!((server.kind, server.mode), (Kind::Mcp, Mode::Enforce));
    assert_eq!(server.screen, ScreenSource::On(DetectorsSource::default()));
    assert_eq!(configuration.held_answers.bytes(), 256 << 20);
    assert_eq!(server.protocol, [ProtocolVersion::V2026_07_28]);
    let limits = &server.limits;
    assert_eq!((limits.request.bytes(), limits.listing.bytes(), limits.answer.bytes()), (1 << 20, 1 << 20, 16 << 20));
    assert_eq!(limits.depth.get(), 64);
    assert_eq!(
        (server.timeouts.body.get(), server.timeouts.answer.get()),
        (Duration::from_secs(10), Duration::from_mins(1))
    );
    let denials = &server.denials;
    assert_eq!(
        (denials.policy_status.get(), denials.unlisted_method_status.get(), denials.upstream_status.get()),
        (200, 404, 502)
    );
    assert_eq!(
        (denials.disclose, denials.step_up, denials.code.get()),
        (Disclose::Explicit, StepUp::Challenge, -32_000)
    );
    assert_eq!(server.upstream.credential, CredentialSource::None);
    assert_eq!(server.upstream.listing_credential, None);
    assert_eq!((server.upstream.timeout.get(), server.upstream.concurrency.get()), (Duration::from_secs(5), 4));
}

#[test]
fn every_key_is_read() {
    let server = server(concat!(
        "  kind: mcp\n  allowed_origins: [https://a.example]\n  protocol: [\"2026-07-28\"]\n  mode: enforce\n",
        "  authorization_server: {issuer: https://auth.acme.com, x_extra: [1, {a: true}]}\n",
        "  upstream: {url: https://v.example/mcp, credential: passthrough, listing_credential: {bearer: {env: T}}, timeout: 9s, concurrency: 1, ca: ca.pem}\n",
        "  policy: {file: policy.yaml}\n  record: {file: records/cases.yaml, refresh: 5m}\n",
        "  capability_scopes: {\"tool:a\": cases:write, b: [x, y]}\n",
        "  limits: {request: 64KiB, listing: 2MiB, answer: 3MiB, depth: 8}\n",
        "  timeouts: {body: 50ms, answer: 1m}\n",
        "  denials: {policy_status: 403, disclose: hidden, step_up: frame, code: -32050, unlisted_method_status: 400, upstream_status: 200}\n",
        "  screen: off\n",
    ));
    assert_eq!(server.allowed_origins, ["https://a.example"]);
    let metadata = server.authorization_server.expect("there").0;
    assert_eq!(metadata["x_extra"].to_string(), r#"[1,{"a":true}]"#);
    assert_eq!(server.upstream.credential, CredentialSource::Passthrough);
    assert!(matches!(server.policy, Some(FileOr::File(reference)) if reference.file == Path::new("policy.yaml")));
    let bearer = SecretSource { file: None, env: Some("T".into()) };
    assert_eq!(server.upstream.listing_credential, Some(CredentialSource::Bearer(bearer)));
    assert_eq!((server.upstream.timeout.get(), server.upstream.concurrency.get()), (Duration::from_secs(9), 1));
    assert_eq!(server.upstream.ca.as_deref(), Some(Path::new("ca.pem")));
    let record = server.record.expect("there");
    assert_eq!((record.file, record.refresh.get()), ("records/cases.yaml".into(), Duration::from_mins(5)));
    assert_eq!(server.capability_scopes["tool:a"], OneOrMany(vec!["cases:write".into()]));
    assert_eq!(server.capability_scopes["b"], OneOrMany(vec!["x".into(), "y".into()]));
    assert_eq!((server.limits.request.bytes(), server.limits.depth.get()), (65_536, 8));
    assert_eq!(server.timeouts.body.get(), Duration::from_millis(50));
    assert_eq!((server.denials.policy_status.get(), server.denials.code.get()), (403, -32_050));
    assert_eq!((server.denials.disclose, server.denials.step_up), (Disclose::Hidden, StepUp::Frame));
    assert_eq!(server.screen, ScreenSource::Off);
}

#[test]
fn a_policy_may_stand_inline() {
    let server = server("  policy:\n    roles: {reader: [a]}\n    rules: [{role: reader}]\n");
    let Some(FileOr::Inline(PolicySource { roles, rules, .. })) = server.policy else { panic!("inline") };
    assert_eq!((roles.len(), rules.len()), (1, 1));
    assert_eq!(
        fault("  policy: {file: policy.yaml, roles: {}}\n"),
        "7:31 expected `file`, found the unknown key `roles`; remove it"
    );
    assert!(
        fault("  policy: {roles: {}, rules: [{rol: reader}]}\n").starts_with("7:32 expected a known key, found `rol`")
    );
}

#[test]
fn the_listener_is_a_socket_or_an_address() {
    let listener = |text: &str| {
        raw(&format!("listen:\n  ext_proc: {text}\nservers: []\n")).map(|read| read.listen.expect("there").ext_proc)
    };
    assert!(
        matches!(listener("unix:/run/a.sock"), Ok(ExtProcListener::Unix(path)) if path == Path::new("/run/a.sock"))
    );
    let tls = listener("{address: '[::1]:9002', tls: {cert: c, key: k, client_ca: a}}").expect("loads");
    assert!(matches!(tls, ExtProcListener::Tcp(TcpListener { tls: Some(_), insecure: false, .. })));
    for wrong in ["unix:run/a.sock", "unix:/", "127.0.0.1:9002", "[]", "7"] {
        let faults = listener(wrong).expect_err(wrong);
        assert!(faults[0].starts_with("2:13 expected `unix:/absolute/path` or "), "{wrong}: {faults:?}");
    }
    assert_eq!(listener("{address: localhost, tls: {cert: c}}").expect_err("two missing keys").len(), 3);
}

#[test]
fn the_admin_page_is_off_unless_it_is_on() {
    let page = |text: &str| {
        let text = format!("listen: {{ext_proc: unix:/a, admin: {{address: 127.0.0.1:1{text}}}}}\nservers: []\n");
        raw(&text).map(|configuration| configuration.listen.expect("listen").admin.expect("admin").page)
    };
    assert_eq!(page(""), Ok(AdminPage::Off));
    assert_eq!(page(", page: off"), Ok(AdminPage::Off));
    assert_eq!(page(", page: on"), Ok(AdminPage::On));
    assert!(page(", page: true").expect_err("no word")[0].contains("`off`, `on`"), "{:?}", page(", page: true"));
}

#[test]
fn a_revision_that_is_not_spoken_is_refused() {
    assert!(fault("  protocol: [\"2025-11-25\"]\n").starts_with("7:14 expected `2026-07-28`, found `2025-11-25`"));
}

#[test]
fn sizes_and_times_have_units_and_bounds() {
    for wrong in ["1", "1MB", "0B", "1.5MiB", "2GiB", "99999999999999999999B", "-1B", "MiB"] {
        assert!(fault(&format!("  limits: {{request: {wrong}}}\n")).contains("a size with its unit"), "{wrong}");
    }
    for wrong in ["5", "5 s", "0ms", "25h", "1d", "s", "99999999999999999999h"] {
        assert!(fault(&format!("  timeouts: {{body: {wrong}}}\n")).contains("a time with its unit"), "{wrong}");
    }
    for wrong in ["7", "513", "70000", "x"] {
        assert!(read(&format!("  limits: {{depth: {wrong}}}\n")).is_err(), "{wrong}");
    }
    for wrong in ["0", "5", "-1", "300", "x"] {
        assert!(read(&format!("  upstream: {{concurrency: {wrong}}}\n")).is_err(), "{wrong}");
    }
    assert!(raw(&format!("{LISTEN}servers: []\nmax_streams: 0\n")).is_err());
    assert!(raw(&format!("{LISTEN}servers: []\nworker_threads: 0\n")).is_err());
}

#[test]
fn denials_take_only_what_the_ladder_knows() {
    for wrong in [
        "policy_status: 201",
        "policy_status: x",
        "disclose: maybe",
        "step_up: none",
        "unlisted_method_status: 405",
        "upstream_status: 500",
        "code: -32601",
        "code: -32700",
        "code: -32020",
        "code: -32010",
        "code: 1.5",
        "code: 9007199254740993",
        "nope: 1",
    ] {
        assert!(read(&format!("  denials: {{{wrong}}}\n")).is_err(), "{wrong}");
    }
    for right in ["code: -32099", "code: 403", "policy_status: 200"] {
        assert!(read(&format!("  denials: {{{right}}}\n")).is_ok(), "{right}");
    }
}

#[test]
fn an_authorization_server_names_its_issuer() {
    assert!(fault("  authorization_server: {token_endpoint: x}\n").contains("expected the member `issuer`"));
}

#[test]
fn a_matcher_is_exactly_one_form() {
    let faults = |text: &str| {
        let text = format!(
            "{LISTEN}servers:\n- name: a\n  match: {text}\n  resource: r\n  identity: {{static: {{subject: a}}}}\n"
        );
        raw(&text).expect("loads").servers[0].matcher.as_ref().expect("there").faults()
    };
    assert!(faults("{route: [a, b]}").is_empty());
    assert!(faults("{authority: 'mcp.acme.com:8443', path: /mcp}").is_empty());
    assert!(faults("{authority: ['[::1]:80', a.b.], path: /}").is_empty());
    for (text, key) in [
        ("{}", ""),
        ("{route: a, cluster: b}", ""),
        ("{route: []}", "route"),
        ("{route: ['']}", "route"),
        ("{authority: a}", "path"),
        ("{route: a, path: /x}", "path"),
        ("{authority: a, path: x}", "path"),
        ("{authority: a, path: '/x?y'}", "path"),
        ("{authority: 'a b', path: /x}", "authority"),
        ("{authority: 'https://a', path: /x}", "authority"),
        ("{authority: 'a:99999', path: /x}", "authority"),
        ("{authority: '*.a', path: /x}", "authority"),
        ("{authority: 'u@a', path: /x}", "authority"),
    ] {
        let keys: Vec<&str> = faults(text).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [key], "{text}");
    }
}
