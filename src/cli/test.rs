//! `portcullis test`: a table of calls and what is to become of each, for CI of policy repositories.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use portcullis::config::{CaseSource, Cases, ClaimsSource, Expect, Located};
use portcullis::explain::{self, Asked, Call, Explained, Outcome, Who, World};
use portcullis::ladder::{Server, Snapshot};
use portcullis::policy::Label;

use super::explain::{FAULT, load, runtime, server, shown};

#[cfg(test)]
mod tests;

/// Options of `test`.
#[derive(Args)]
pub(super) struct TestArgs {
    /// The file of cases.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The configuration file; without it, the one that the file of cases names.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Tries every case. Exits with 0 when all pass, 1 when one fails, 2 when a file or the configuration is at fault.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn run(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let results = match tried(args) {
        Ok(results) => results,
        Err(faults) => {
            eprint!("{faults}");
            return Ok(ExitCode::from(FAULT));
        }
    };
    let text = if args.json { json(&results)? } else { text(&results)? };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if results.iter().all(|result| result.passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What became of one case.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Tried {
    name: String,
    passed: bool,
    expected: String,
    got: String,
    /// The rung that refused, or would have.
    rung: Option<&'static str>,
    /// Indices of the policy's rules that match the caller.
    rules: Vec<usize>,
}

/// A case that is ready: its request and who makes it.
struct Ready<'a> {
    case: &'a CaseSource,
    asked: Asked,
}

/// Loads and tries; an error is lines for standard error.
fn tried(args: &TestArgs) -> Result<Vec<Tried>, String> {
    let told = |faults: Vec<Located>| faults.iter().map(|fault| format!("{fault}\n")).collect::<String>();
    let cases = Cases::read(&args.file).map_err(told)?;
    let beside = |config: &PathBuf| args.file.parent().unwrap_or(Path::new("")).join(config);
    let config = args.config.clone().or_else(|| cases.source.config.as_ref().map(beside)).ok_or_else(|| {
        let file = args.file.display();
        format!(
            "{file}:1:1: expected the configuration file: add `config: portcullis.yaml`, or name one with --config\n"
        )
    })?;
    let snapshot = load(&config)?;
    let ready = ready(&cases, &snapshot).map_err(told)?;
    let runtime = runtime()?;
    let decide = |Ready { case, asked }| {
        let explained = runtime.block_on(explain::explain(&snapshot, asked, World::default()));
        judge(case, &explained)
    };
    Ok(ready.into_iter().map(decide).collect())
}

/// Makes all requests before the first is decided, so that one run tells of every fault.
fn ready<'a>(cases: &'a Cases, snapshot: &Snapshot) -> Result<Vec<Ready<'a>>, Vec<Located>> {
    let (mut ready, mut faults) = (Vec::new(), Vec::new());
    for (index, case) in cases.source.cases.iter().enumerate() {
        match request(cases, case, snapshot) {
            Ok(asked) => ready.push(Ready { case, asked }),
            Err((key, message)) => faults.push(cases.at(index, key, &message)),
        }
        for label in labels(&case.expect) {
            if let Err(fault) = label.parse::<Label>() {
                faults.push(cases.at(index, "expect", &format!("{fault} in `{label}`")));
            }
        }
    }
    if faults.is_empty() { Ok(ready) } else { Err(faults) }
}

fn request(cases: &Cases, case: &CaseSource, snapshot: &Snapshot) -> Result<Asked, (&'static str, String)> {
    let name = case.server.as_deref().or(cases.source.server.as_deref());
    let server: &Arc<Server> = server(snapshot, name).map_err(|message| ("server", message))?;
    let arguments = case.arguments.as_ref().map(ToString::to_string);
    let call = Call {
        method: case.method.as_deref(),
        capability: case.capability.as_deref(),
        arguments: arguments.as_deref(),
    };
    let key = if case.capability.is_some() { "capability" } else { "method" };
    let (head, body) = call.request(server).map_err(|fault| (key, fault.to_string()))?;
    let named = case.principal.as_ref().and_then(|name| cases.source.principals.get(name));
    let who = match case.claims.as_ref().or(named) {
        None => Who::Presented,
        Some(claims) => Who::Vouched(token(server, claims).map_err(|error| ("claims", error.to_string()))?),
    };
    Ok(Asked { head, body, who })
}

/// The claims with what every token here must say; what is `null` stays out.
fn token(server: &Server, claims: &ClaimsSource) -> serde_json::Result<String> {
    let mut all: ClaimsSource = serde_json::from_str(&explain::complete(server, &serde_json::to_string(claims)?))?;
    all.retain(|_, value| !value.is_null());
    serde_json::to_string(&all)
}

fn labels(expect: &Expect) -> &[String] {
    match expect {
        Expect::Visible(labels) | Expect::Hidden(labels) => labels,
        Expect::Allow | Expect::Refuse(_) | Expect::WouldRefuse(_) => &[],
    }
}

/// Compares what came with what was expected.
fn judge(case: &CaseSource, explained: &Explained) -> Tried {
    let wanted: Vec<Label> = labels(&case.expect).iter().filter_map(|label| label.parse().ok()).collect();
    let sees = |label: &Label| explained.visible.as_ref().is_some_and(|visible| visible.contains(label));
    let same =
        |visible: &Vec<Label>| visible.len() == wanted.len() && wanted.iter().all(|label| visible.contains(label));
    let forwarded = explained.answer.is_none();
    let passed = match &case.expect {
        Expect::Allow => forwarded && explained.would_refuse.is_empty(),
        Expect::Refuse(reason) => explained.reason.as_ref() == Some(reason),
        Expect::WouldRefuse(reason) => forwarded && explained.would_refuse.contains(reason),
        Expect::Visible(_) => explained.visible.as_ref().is_some_and(same),
        Expect::Hidden(_) => explained.visible.is_some() && !wanted.iter().any(sees),
    };
    let refusing = explained.rungs.iter().find(|row| row.outcome == Outcome::Refuse);
    let rules = explained.rules.iter().flat_map(|rules| &rules.matched).map(|rule| rule.index);
    let expected = match &case.expect {
        Expect::Allow => "allow".to_owned(),
        Expect::Refuse(reason) => format!("refuse {reason}"),
        Expect::WouldRefuse(reason) => format!("would refuse {reason}"),
        Expect::Visible(_) => format!("visible {}", list(&wanted)),
        Expect::Hidden(_) => format!("hidden {}", list(&wanted)),
    };
    let got = got(explained, !labels(&case.expect).is_empty() || matches!(case.expect, Expect::Visible(_)));
    Tried { name: case.name.clone(), passed, expected, got, rung: refusing.map(|row| row.rung), rules: rules.collect() }
}

/// What became of the call; of a listing what is shown, where that was asked.
fn got(explained: &Explained, listing: bool) -> String {
    match (&explained.answer, &explained.reason, &explained.visible) {
        (Some(answer), None, _) => format!("answer HTTP {}", answer.status),
        (Some(_), Some(reason), _) => format!("refuse {reason}"),
        (None, _, Some(visible)) if listing => format!("visible {}", list(visible)),
        (None, ..) if explained.would_refuse.is_empty() => "allow".to_owned(),
        (None, ..) => format!("would refuse {}", explained.would_refuse.join(", ")),
    }
}

fn list(labels: &[Label]) -> String {
    if labels.is_empty() {
        return "nothing".to_owned();
    }
    labels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn text(results: &[Tried]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    for Tried { name, passed, expected, got, rung, rules } in results {
        let word = if *passed { "PASS" } else { "FAIL" };
        let rung = rung.map_or_else(String::new, |rung| format!("rung {rung}, "));
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let rules = if rules.is_empty() { "no rule".to_owned() } else { format!("rules {}", rules.join(", ")) };
        let line = format!("{word}  {name}: expected {expected}, got {got} ({rung}{rules})");
        writeln!(out, "{}", shown(&line))?;
    }
    let failed = results.iter().filter(|result| !result.passed).count();
    writeln!(out, "{} passed, {failed} failed", results.len().saturating_sub(failed))?;
    Ok(out)
}

#[derive(Serialize)]
struct Whole<'a> {
    passed: usize,
    failed: usize,
    cases: &'a [Tried],
}

fn json(results: &[Tried]) -> serde_json::Result<String> {
    let passed = results.iter().filter(|result| result.passed).count();
    let whole = Whole { passed, failed: results.len().saturating_sub(passed), cases: results };
    serde_json::to_string_pretty(&whole).map(|text| text + "\n")
}
