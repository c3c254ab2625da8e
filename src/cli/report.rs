//! `portcullis report`: what enforcing would have refused, out of audit lines, before anybody enforces it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};

/// Options of `report`.
#[derive(Args)]
pub(super) struct ReportArgs {
    /// Files of audit lines; standard input without any, or for `-`.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints, per server, what was recorded and not enforced: for whom, how often, since when.
///
/// # Errors
/// A file cannot be read, or standard output cannot be written.
pub(super) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let mut tally = Tally::default();
    if args.files.is_empty() {
        tally.read(std::io::stdin().lock()).context("cannot read standard input")?;
    }
    for file in &args.files {
        let place = file.display();
        if file.as_os_str() == "-" {
            tally.read(std::io::stdin().lock()).context("cannot read standard input")?;
        } else {
            let open = std::fs::File::open(file).with_context(|| format!("cannot open {place}"))?;
            tally.read(BufReader::new(open)).with_context(|| format!("cannot read {place}"))?;
        }
    }
    let text = if args.json { tally.json()? } else { tally.text()? };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// What is read of an audit line; the rest of it is no concern here.
#[derive(Deserialize)]
struct Line {
    schema: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    principal: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    capability: String,
    #[serde(default)]
    gate: String,
    #[serde(default)]
    reason: String,
    enforced: bool,
    #[serde(default)]
    would_refuse: Vec<String>,
    #[serde(default)]
    entries_hidden: u64,
}

/// One thing that enforcing would have done to one caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    server: String,
    reason: String,
    capability: String,
    gate: String,
    principal: String,
}

/// How often, and when.
#[derive(Clone, Debug, Default)]
struct Count {
    times: u64,
    first: String,
    last: String,
}

/// Everything that was found.
#[derive(Default)]
struct Tally {
    found: BTreeMap<Key, Count>,
    /// Lines that are audit records.
    records: u64,
    /// Lines that are not.
    skipped: u64,
}

/// One row of the JSON form.
#[derive(Serialize)]
struct Row<'a> {
    server: &'a str,
    reason: &'a str,
    capability: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    gate: &'a str,
    principal: &'a str,
    times: u64,
    first: &'a str,
    last: &'a str,
}

#[derive(Serialize)]
struct Whole<'a> {
    records: u64,
    skipped: u64,
    would_refuse: Vec<Row<'a>>,
}

impl Tally {
    /// Takes lines in; what is no audit record is counted and skipped, because logs are mixed.
    fn read(&mut self, lines: impl BufRead) -> std::io::Result<()> {
        for line in lines.split(b'\n') {
            let line = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Line>(&line) {
                Ok(line) if line.schema == portcullis::telemetry::audit::SCHEMA => self.add(line),
                _ => self.skipped += 1,
            }
        }
        Ok(())
    }

    fn add(&mut self, line: Line) {
        self.records += 1;
        let mut reasons = line.would_refuse;
        if reasons.is_empty() && !line.enforced {
            // Not a refusal: what would have been cut is named by the rung that cuts.
            reasons.push(if line.entries_hidden > 0 { "listing".to_owned() } else { "answer".to_owned() });
        }
        for reason in reasons {
            let capability = if line.capability.is_empty() { &line.method } else { &line.capability };
            // The record names one gate: that of its own reason.
            let gate = if reason == line.reason { line.gate.clone() } else { String::new() };
            let key = Key {
                server: line.server.clone(),
                reason,
                capability: capability.clone(),
                gate,
                principal: line.principal.clone(),
            };
            let count = self.found.entry(key).or_default();
            count.times += 1;
            if count.first.is_empty() || line.time < count.first {
                count.first.clone_from(&line.time);
            }
            if line.time > count.last {
                count.last.clone_from(&line.time);
            }
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        let rows = self.found.iter().map(|(key, count)| Row {
            server: &key.server,
            reason: &key.reason,
            capability: &key.capability,
            gate: &key.gate,
            principal: &key.principal,
            times: count.times,
            first: &count.first,
            last: &count.last,
        });
        let whole = Whole { records: self.records, skipped: self.skipped, would_refuse: rows.collect() };
        serde_json::to_string_pretty(&whole).map(|text| text + "\n")
    }

    fn text(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        let mut server = None;
        for (key, count) in &self.found {
            if server != Some(&key.server) {
                server = Some(&key.server);
                self.heading(&key.server, &mut out)?;
            }
            let gate = if key.gate.is_empty() { String::new() } else { format!(" (gate {})", key.gate) };
            let (capability, principal) = (shown(&key.capability), shown(&key.principal));
            let Count { times, first, last } = count;
            writeln!(out, "  {times:>7}  {}{gate}  {capability}  {principal}  {first} to {last}", key.reason)?;
        }
        if self.found.is_empty() {
            writeln!(out, "enforcing would have changed nothing")?;
        }
        writeln!(out, "{} audit records read, {} other lines skipped", self.records, self.skipped)?;
        Ok(out)
    }

    fn heading(&self, server: &str, out: &mut String) -> fmt::Result {
        let own = || self.found.iter().filter(|(key, _)| key.server == server).map(|(_, count)| count);
        let times: u64 = own().map(|count| count.times).sum();
        let first = own().map(|count| count.first.as_str()).min().unwrap_or_default();
        writeln!(out, "server {}: {times} times since {first}", shown(server))
    }
}

/// A caller's word, on one line and without what steers a terminal.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;
