//! `portcullis doctor` before the real Envoy: nothing against the shipped configuration, and what is wrong with a bad one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::fixture::Ports;
use crate::support::{Request, Stack, fixture, root, substitute};

fn doctor(envoy: &str, config: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["doctor", "--envoy", envoy, "--config"]).arg(config).args(more);
    command.output().expect("portcullis runs")
}

#[track_caller]
fn assert_nothing_found(output: &Output) {
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.ends_with(": danger 0, warning 0, note 0\n") && printed.lines().count() == 1, "{printed}");
}

#[test]
fn nothing_is_found_in_a_running_shipped_envoy_nor_in_its_dump() {
    let stack = Stack::start();
    let config = stack.dir.path().join("portcullis.yaml");
    assert_nothing_found(&doctor(&format!("http://127.0.0.1:{}", stack.envoy.admin), &config, &[]));
    let dump = stack.dir.path().join("dump.json");
    fs::write(&dump, Request::get("/config_dump").send(stack.envoy.admin).body).expect("the dump");
    assert_nothing_found(&doctor(&dump.display().to_string(), &config, &[]));
}

#[test]
fn what_is_wrong_with_a_running_envoy_is_found_the_worst_first() {
    let edits = [
        ("failure_mode_allow: false", "failure_mode_allow: true"),
        (
            "{cluster: cases, timeout: 0s, idle_timeout: 0s}\n                request_body",
            "{cluster: cases, timeout: 20s, idle_timeout: 0s, retry_policy: {retry_on: 5xx}}\n                request_body",
        ),
        ("string_match: {exact: cases}", "string_match: {exact: other}"),
        ("              status_on_error: {code: ServiceUnavailable}\n", ""),
    ];
    let stack = Stack::with(&[], &edits);
    let address = format!("http://127.0.0.1:{}/", stack.envoy.admin);
    let output = doctor(&address, &stack.dir.path().join("portcullis.yaml"), &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut ids: Vec<&str> = findings.iter().map(|finding| finding["id"].as_str().expect("an id")).collect();
    assert_eq!((ids.remove(ids.len() - 1), ids.remove(ids.len() - 1)), ("ext_proc.status_on_error", "route.timeout"));
    ids.sort_unstable();
    assert_eq!(ids, ["ext_proc.failure_mode_allow", "route.lock_server", "route.lock_server", "route.retry"]);
    for finding in &findings {
        let texts =
            ["severity", "where", "expected", "found", "fix"].map(|key| finding[key].as_str().unwrap_or_default());
        assert!(texts.iter().all(|text| !text.is_empty()), "{finding}");
    }
}

#[test]
fn nothing_is_found_in_the_shipped_files() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fixture::write_files(dir.path(), &[]);
    let config = fixture::configuration(dir.path(), &Ports { idp: 1, upstream: 1 });
    let socket = format!("unix:{}/ext_proc.sock", dir.path().display());
    for (file, unmatched) in [("edge.yaml", "deny"), ("sidecar.yaml", "pass")] {
        let edits = [
            (socket.as_str(), "unix:/run/portcullis/ext_proc.sock"),
            ("unmatched: deny", &format!("unmatched: {unmatched}")),
        ];
        let path = dir.path().join("portcullis.yaml");
        fs::write(&path, substitute(&config, &edits)).expect("portcullis.yaml");
        let envoy = root().join("deploy/envoy").join(file);
        assert_nothing_found(&doctor(&envoy.display().to_string(), &path, &[]));
    }
}

#[test]
fn what_cannot_be_read_is_another_exit_code() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fixture::write_files(dir.path(), &[]);
    let config = dir.path().join("portcullis.yaml");
    fs::write(&config, fixture::configuration(dir.path(), &Ports { idp: 1, upstream: 1 })).expect("portcullis.yaml");
    let edge = root().join("deploy/envoy/edge.yaml").display().to_string();
    let cases = [
        ("nowhere.yaml".to_owned(), config.clone(), "nowhere.yaml: expected a file"),
        (config.display().to_string(), config.clone(), "portcullis.yaml:1:1: expected an Envoy bootstrap"),
        ("http://127.0.0.1:1".to_owned(), config.clone(), "http://127.0.0.1:1/config_dump"),
        ("https://127.0.0.1:1".to_owned(), config, "expected http://HOST:PORT"),
        (edge, dir.path().join("policy.yaml"), "expected a configuration without faults"),
    ];
    for (envoy, config, told) in cases {
        let output = doctor(&envoy, &config, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(told), "{envoy}: {:?} {said}", output.status);
    }
}
