//! A real Envoy on the shipped configuration.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::child::Child;
use super::client::Request;
use super::{root, substitute, wait_for};

/// The shipped edge configuration.
pub(crate) const EDGE: &str = include_str!("../../deploy/envoy/edge.yaml");
/// The shipped sidecar configuration.
pub(crate) const SIDECAR: &str = include_str!("../../deploy/envoy/sidecar.yaml");

/// A configuration without its filter of this name.
pub(crate) fn without_filter(config: &str, name: &str) -> String {
    let start = config.find(&format!("          - name: {name}\n")).expect("the filter is there");
    let end = config[start + 1..].find("\n          - name: ").expect("a filter behind it");
    format!("{}{}", &config[..start], &config[start + end + 2..])
}

/// A configuration with a filter that plants `metadata` under `portcullis` in the place of the `ext_proc` filter: a stand-in
/// for the verdict.
pub(crate) fn with_verdict(config: &str, metadata: &str) -> String {
    let filter = format!(
        r#"          - name: envoy.filters.http.set_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
              metadata: [{{metadata_namespace: portcullis, value: {metadata}}}]
          - name: envoy.filters.http.rbac
"#
    );
    substitute(
        &without_filter(config, "envoy.filters.http.ext_proc"),
        &[("          - name: envoy.filters.http.rbac\n", &filter)],
    )
}

/// A running Envoy; ends when dropped.
pub(crate) struct Envoy {
    process: Child,
    /// The port of its listener on 127.0.0.1.
    pub(crate) port: u16,
    /// The port of its admin endpoint on 127.0.0.1.
    pub(crate) admin: u16,
    access_log: PathBuf,
    /// How long it took from the start of the process to a listening, ready Envoy.
    pub(crate) started_in: Duration,
    _dir: TempDir,
}

/// The Envoy binary: `$PORTCULLIS_ENVOY`, else what `make tools` installed.
pub(crate) fn binary() -> PathBuf {
    let path = std::env::var_os("PORTCULLIS_ENVOY").map_or_else(|| root().join(".tools/envoy"), PathBuf::from);
    assert!(
        path.exists(),
        "expected Envoy at {}, found nothing there: run `make tools`, or name a binary in PORTCULLIS_ENVOY",
        path.display()
    );
    path
}

/// Asks Envoy whether it accepts a configuration file; its complaint when it does not.
pub(crate) fn validate(file: &Path) -> Result<(), String> {
    let output =
        Command::new(binary()).args(["--mode", "validate", "-l", "warn", "-c"]).arg(file).output().expect("Envoy runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // A warning is a fault as well: what Envoy deprecates today refuses to load tomorrow.
    if output.status.success() && !said.contains("[warning]") { Ok(()) } else { Err(said) }
}

impl Envoy {
    /// Starts Envoy on `template` with `edits` made in it, and waits until it is ready. The ports of the shipped listeners and
    /// of the admin interface become ports of the kernel's choice, so that tests may run side by side.
    pub(crate) fn start(template: &str, edits: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(binary()), Duration::from_secs(20), template, edits)
    }

    /// As [`Self::start`], by a command that runs Envoy, which may take so long to become ready.
    pub(crate) fn start_by(mut command: Command, patience: Duration, template: &str, edits: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (config, access_log) = (dir.path().join("envoy.yaml"), dir.path().join("access.log"));
        let admin_file = dir.path().join("admin.txt");
        let mut text = substitute(template, edits);
        for port in ["port_value: 8080", "port_value: 15001", "port_value: 9901"] {
            text = text.replace(port, "port_value: 0");
        }
        text = text.replace("address: 0.0.0.0", "address: 127.0.0.1");
        fs::write(&config, text).expect("the configuration is written");
        let began = Instant::now();
        command
            .args(["--concurrency", "1", "-l", "warn", "--disable-hot-restart", "--file-flush-interval-msec", "50"])
            .arg("--admin-address-path")
            .arg(&admin_file)
            .arg("-c")
            .arg(&config)
            .stdout(File::create(&access_log).expect("the access log opens"));
        let mut process = Child::spawn("envoy", &mut command, dir.path().join("envoy.log"), vec![access_log.clone()]);
        let found = wait_for(patience, || {
            assert!(process.ended().is_none(), "expected Envoy to run, it ended:\n{}", process.tail());
            let admin = fs::read_to_string(&admin_file).ok()?.trim().rsplit_once(':')?.1.parse().ok()?;
            (Request::get("/ready").try_send(admin)?.status == 200).then_some(admin)
        });
        let admin = found.unwrap_or_else(|| {
            panic!("expected Envoy to be ready within {patience:?}, it was not:\n{}", process.tail())
        });
        let listeners = Request::get("/listeners?format=json").send(admin).json();
        let port = listeners["listener_statuses"][0]["local_address"]["socket_address"]["port_value"].as_u64();
        let port = port
            .and_then(|port| u16::try_from(port).ok())
            .unwrap_or_else(|| panic!("expected a listener's port, got {listeners}"));
        Self { process, port, admin, access_log, started_in: began.elapsed(), _dir: dir }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.inner.id()
    }

    /// The value of one counter or gauge of Envoy's; 0 when it has none of that name.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let text = Request::get(&format!("/stats?usedonly&filter=^{name}$")).send(self.admin).text();
        text.trim().rsplit_once(": ").and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    }

    /// The access log so far, one JSON object a line, once it holds at least `count` lines.
    pub(crate) fn access_log(&self, count: usize) -> Vec<Value> {
        let read = || {
            let text = fs::read_to_string(&self.access_log).ok()?;
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            (lines.len() >= count).then_some(lines)
        };
        wait_for(Duration::from_secs(5), read)
            .unwrap_or_else(|| panic!("expected {count} access log lines:\n{}", self.process.tail()))
    }
}
