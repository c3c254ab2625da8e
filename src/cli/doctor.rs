//! `portcullis doctor`: what is unsafe, or will surprise, in an Envoy configuration.

mod fetch;

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use portcullis::config;
use portcullis::doctor::{self, Finding, Guarded, MAX_BYTES, Severity};
use portcullis::identity::KeyStores;

/// Options of `doctor`.
#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Envoy's bootstrap (YAML or JSON), an answer of `/config_dump`, or the address of an admin endpoint
    /// (`http://127.0.0.1:9901`).
    #[arg(long, value_name = "FILE_OR_URL")]
    envoy: String,
    /// Portcullis's configuration: routes, limits and timeouts are held against it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the findings, the worst first. Exits with 0 where there is none but notes, 1 where there is, and 2 where a
/// configuration could not be read.
pub(super) fn run(args: &DoctorArgs) -> ExitCode {
    match findings(args).and_then(|findings| print(args, &findings).map(|()| findings)) {
        Ok(findings) if findings.iter().all(|finding| finding.severity == Severity::Note) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("portcullis doctor: {error}");
            ExitCode::from(2)
        }
    }
}

fn findings(args: &DoctorArgs) -> Result<Vec<Finding>, String> {
    let guarded = args.config.as_deref().map(guarded).transpose()?;
    let (text, server) = if args.envoy.starts_with("http://") || args.envoy.starts_with("https://") {
        fetch::admin(&args.envoy)?
    } else {
        (file(Path::new(&args.envoy))?, None)
    };
    let configuration = doctor::read(Path::new(&args.envoy), &text)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let server: Option<Value> = server.and_then(|text| serde_json::from_str(&text).ok());
    Ok(doctor::examine(&configuration, guarded.as_ref(), server.as_ref()))
}

/// What Portcullis's configuration needs of Envoy's. Fetches nothing.
fn guarded(path: &Path) -> Result<Guarded, String> {
    let loaded = config::load(path, &KeyStores::new());
    loaded.serving.as_ref().map(Guarded::of).ok_or_else(|| {
        let faults: Vec<String> = loaded.faults.iter().map(ToString::to_string).collect();
        format!("expected a configuration without faults; see `portcullis check`\n{}", faults.join("\n"))
    })
}

fn file(path: &Path) -> Result<String, String> {
    let fault = |what: &dyn std::fmt::Display| {
        format!("{}: expected a file that can be read as UTF-8 text, but {what}; check the path", path.display())
    };
    let file = std::fs::File::open(path).map_err(|error| fault(&error))?;
    let mut text = String::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_string(&mut text).map_err(|error| fault(&error))?;
    Ok(text)
}

fn print(args: &DoctorArgs, findings: &[Finding]) -> Result<(), String> {
    let text = if args.json {
        serde_json::to_string_pretty(findings).map(|text| text + "\n").map_err(|error| error.to_string())?
    } else {
        report(&args.envoy, findings)
    };
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}

/// The findings for a person, the worst first, and how many there are.
fn report(name: &str, findings: &[Finding]) -> String {
    let mut out = String::new();
    for Finding { id, severity, place, expected, found, fix } in findings {
        let _ = writeln!(
            out,
            "{}: {id}\n  at        {place}\n  expected  {expected}\n  found     {found}\n  fix       {fix}\n",
            severity.as_str()
        );
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let [dangers, warnings, notes] = [Severity::Danger, Severity::Warning, Severity::Note].map(count);
    let _ = writeln!(out, "{name}: danger {dangers}, warning {warnings}, note {notes}");
    out
}
