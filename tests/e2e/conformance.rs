//! The official conformance suite against a conformant server, straight and through Envoy and Portcullis with a policy that
//! allows everything: what it finds must be the same, scenario by scenario and check by check.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::child::Child;
use crate::support::{Stack, fixture, free_port, root, substitute, wait_for};

/// What a scenario found: id, name, status and complaint of each check, in order.
type Checks = Vec<[String; 4]>;
type Findings = BTreeMap<String, Checks>;

/// The scenarios that the suite runs for the revision and does not count: the tasks extension, which neither side speaks. They
/// are compared all the same.
const UNSPOKEN: &str = "tasks-";

/// The suite's server, made with the Python SDK (tests/clients/suite/everything.py), and a folder for what is found.
struct Everything {
    port: u16,
    dir: TempDir,
    _process: Child,
}

impl Everything {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new(root().join(".tools/bin/python"));
        command.arg(root().join("tests/clients/suite/everything.py")).stdout(Stdio::piped());
        let mut process = Child::spawn("everything.py", &mut command, dir.path().join("server.log"), Vec::new());
        let (mut line, output) = (String::new(), process.inner.stdout.take().expect("its output is piped"));
        BufReader::new(output).read_line(&mut line).expect("its output is text");
        let port = line.trim().parse();
        let port = port.unwrap_or_else(|_| panic!("expected the server's port, got {line:?}\n{}", process.tail()));
        Self { port, dir, _process: process }
    }

    /// A stack in front of it that allows everything, on the port `public`. Recorded and priced as a user does it.
    fn guarded(&self, public: u16, disclose: &str) -> Stack {
        let config = |_: String, dir: &Path| {
            let text = format!(
                r#"listen: {{ext_proc: "unix:{dir}/ext_proc.sock"}}
servers:
- name: cases
  match: {{route: [cases, cases-stream]}}
  resource: http://127.0.0.1:{public}/mcp
  identity: {{static: {{subject: suite}}}}
  upstream: {{url: "http://127.0.0.1:{port}/mcp"}}
  policy: {{roles: {{everyone: [use]}}, rules: [{{role: everyone}}]}}
  record: {{file: everything.yaml}}
  denials: {{disclose: {disclose}}}
"#,
                dir = dir.display(),
                port = self.port,
            );
            let (file, record) = (dir.join("portcullis.yaml"), dir.join("everything.yaml"));
            fs::write(&file, &text).expect("portcullis.yaml");
            let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
            let ran = command.args(["record", "--server", "cases", "--config"]).arg(&file).output().expect("it runs");
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            let unpriced = fs::read_to_string(&record).expect("the record");
            fs::write(&record, substitute(&unpriced, &[("permission: TODO", "permission: use")])).expect("the record");
            text
        };
        let port = format!("port_value: {public}");
        Stack::made(
            Some(self.port),
            |text, parts| config(text, parts.dir),
            |edge, _| substitute(&edge, &[("port_value: 8080", port.as_str())]),
        )
    }

    /// Runs the suite's scenarios that `which` names against a port.
    fn suite(&self, port: u16, which: &[&str]) -> Findings {
        let found = self.dir.path().join("found");
        let _ = fs::remove_dir_all(&found);
        let mut command = Command::new(root().join(".tools/node"));
        command
            .arg(root().join(".tools/suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"))
            .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp"), "--output-dir"])
            .arg(&found)
            .args(which)
            .stdout(Stdio::null());
        let mut process = Child::spawn("conformance", &mut command, self.dir.path().join("suite.log"), Vec::new());
        let ended = wait_for(Duration::from_mins(3), || process.ended());
        assert!(ended.is_some(), "expected the suite to end within 3 minutes\n{}", process.tail());
        let folders = fs::read_dir(&found).unwrap_or_else(|_| panic!("expected results\n{}", process.tail()));
        folders.map(|folder| findings(&folder.expect("a folder of results").path())).collect()
    }

    /// What the whole suite finds on each port. The suite has clocks of its own (half a second for a stream to say something),
    /// so what differs is asked again, alone, before it counts.
    fn both(&self, ports: [u16; 2]) -> [Findings; 2] {
        let mut both = ports.map(|port| self.suite(port, &["--requirements", fixture::VERSION]));
        for _ in 0..2 {
            for scenario in suspects(&both) {
                for (port, found) in ports.into_iter().zip(&mut both) {
                    let which = ["--scenario", &scenario, "--spec-version", fixture::VERSION];
                    found.extend(self.suite(port, &which));
                }
            }
        }
        both
    }
}

/// The scenario of a folder of results, `server-SCENARIO-TIME`, and its checks.
fn findings(folder: &Path) -> (String, Checks) {
    let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
    let scenario =
        name.strip_prefix("server-").and_then(|name| name.get(..name.len() - "-2026-11-30T00-00-00-000Z".len()));
    let text = fs::read_to_string(folder.join("checks.json")).expect("checks.json");
    let checks: Vec<Value> = serde_json::from_str(&text).expect("a list of checks");
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let checks = checks.iter().map(|check| ["id", "name", "status", "errorMessage"].map(|key| text(check, key)));
    (scenario.unwrap_or_else(|| panic!("expected server-SCENARIO-TIME, got {name}")).to_owned(), checks.collect())
}

/// A check that the revision demands and the server does not meet.
fn failed(scenario: &str, checks: &Checks) -> bool {
    !scenario.starts_with(UNSPOKEN) && checks.iter().any(|check| matches!(check[2].as_str(), "FAILURE" | "WARNING"))
}

/// The scenarios that differ, or in which the server itself failed.
fn suspects([straight, guarded]: &[Findings; 2]) -> Vec<String> {
    let of = |(scenario, checks): (&String, &Checks)| {
        (guarded.get(scenario) != Some(checks) || failed(scenario, checks)).then(|| scenario.clone())
    };
    straight.iter().filter_map(of).collect()
}

#[test]
fn the_suite_finds_the_same_with_and_without_portcullis() {
    let (everything, public) = (Everything::start(), free_port());
    let stack = everything.guarded(public, "hidden");
    let [straight, guarded] = everything.both([everything.port, stack.envoy.port]);
    let demanded = straight.keys().filter(|scenario| !scenario.starts_with(UNSPOKEN)).count();
    assert_eq!((demanded, straight.len()), (40, 50), "{:?}", straight.keys());
    for (scenario, checks) in &straight {
        assert!(!failed(scenario, checks), "expected a conformant server, {scenario} found {checks:#?}");
        assert_eq!(guarded.get(scenario), Some(checks), "{scenario}");
    }
    assert_eq!(guarded.len(), straight.len(), "{:?}", guarded.keys());
    // Not vacuous: the calls were decided here.
    assert!(stack.portcullis.audited() > 100, "{}", stack.portcullis.log());
}

/// The one difference that a user chooses: with `disclose: explicit`, the default, a resource that does not exist is told apart
/// from the protocol's own error, against two SHOULDs.
#[test]
fn explicit_refusals_differ_in_what_is_said_of_an_unknown_resource_only() {
    let (everything, public) = (Everything::start(), free_port());
    let stack = everything.guarded(public, "explicit");
    let which = ["--scenario", "sep-2164-resource-not-found", "--spec-version", fixture::VERSION];
    let found = everything.suite(stack.envoy.port, &which);
    let checks = &found["sep-2164-resource-not-found"];
    let warned: Vec<_> = checks.iter().filter(|check| check[2] != "SUCCESS").map(|check| check[0].as_str()).collect();
    assert_eq!((checks.len(), warned), (4, vec!["sep-2164-error-code", "sep-2164-data-uri"]), "{checks:#?}");
    assert!(checks.iter().all(|check| check[2] != "FAILURE"), "{checks:#?}");
}
