//! `portcullis check`: loads everything and prints all that is wrong, or what would be served and who can do what.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use portcullis::config::{self, Loaded, Serving};
use portcullis::extproc::listen::Address;
use portcullis::identity::KeyStores;
use portcullis::ladder::server::Matcher;
use portcullis::ladder::{Kind, Server};
use portcullis::policy::Matrix;
use portcullis::record::Recorded;
use portcullis::upstream::Credential;

/// Options of `check`.
#[derive(Args)]
pub(super) struct CheckArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Prints every fault and exits with 1, or a summary, the warnings and the access matrix. Fetches nothing.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let CheckArgs { config } = args;
    let loaded = config::load(&config, &KeyStores::new());
    let (text, code) = report(&config.display().to_string(), &loaded)?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(code)
}

/// What to print about a configuration.
fn report(name: &str, loaded: &Loaded) -> Result<(String, ExitCode), fmt::Error> {
    let mut out = String::new();
    for fault in &loaded.faults {
        writeln!(out, "{fault}")?;
    }
    for warning in &loaded.warnings {
        writeln!(out, "{warning} (warning)")?;
    }
    let warnings = count(loaded.warnings.len(), "warning");
    let Some(serving) = &loaded.serving else {
        writeln!(out, "\n{name}: {}, {warnings}", count(loaded.faults.len(), "fault"))?;
        return Ok((out, ExitCode::FAILURE));
    };
    let servers = serving.snapshot.servers();
    let heading = format!("{name}: no faults, {warnings}, {}, {}", count(servers.len(), "server"), listener(serving));
    writeln!(out, "{}{heading}", if loaded.warnings.is_empty() { "" } else { "\n" })?;
    for (server, recorded) in servers.iter().zip(&serving.recorded) {
        describe(server, recorded.as_ref(), &mut out)?;
    }
    Ok((out, ExitCode::SUCCESS))
}

fn listener(serving: &Serving) -> String {
    let how = match (&serving.address, &serving.tls) {
        (Address::Unix(_), _) => "",
        (Address::Tcp(_), Some(_)) => " with mutual TLS",
        (Address::Tcp(_), None) => " without TLS",
    };
    format!("listening on {}{how}", serving.address)
}

/// One server: what it is, then who can do what.
fn describe(server: &Server, recorded: Option<&Recorded>, out: &mut String) -> fmt::Result {
    let kind = match server.kind {
        Kind::Mcp => "mcp",
        Kind::Http => "http",
    };
    writeln!(out, "\nserver {} ({kind}) {}", server.name, server.resource.url)?;
    writeln!(out, "  matched by   {}", matched(&server.matcher))?;
    let required: Vec<&str> = server.scopes.names(server.scopes.required()).collect();
    if !required.is_empty() {
        writeln!(out, "  every call   needs the scopes {}", required.join(", "))?;
    }
    let credential = match &server.credential {
        Credential::None => "none (the caller's Authorization is removed)",
        Credential::Passthrough => "passthrough (the caller's Authorization stays)",
        Credential::Bearer(_) => "bearer (in place of the caller's Authorization)",
    };
    writeln!(out, "  credential   {credential}")?;
    if server.kind == Kind::Http {
        return Ok(());
    }
    writeln!(out, "  record       {}{}", count(server.record.len(), "priced capability"), taken(recorded))?;
    writeln!(out)?;
    for line in Matrix::new(&server.policy, &server.prices, &server.scopes).to_string().lines() {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    Ok(())
}

fn matched(matcher: &Matcher) -> String {
    match matcher {
        Matcher::Route(names) => format!("route {}", names.join(", ")),
        Matcher::Cluster(names) => format!("cluster {}", names.join(", ")),
        Matcher::Authority { authorities, path } => format!("authority {} and path {path}", authorities.join(", ")),
    }
}

fn taken(recorded: Option<&Recorded>) -> String {
    let Some(Recorded { from, at, protocol }) = recorded else { return String::new() };
    let part = |word: &str, value: &Option<String>| {
        value.as_ref().map_or_else(String::new, |value| format!(", {word} {value}"))
    };
    format!("{}{}{}", part("taken from", from), part("at", at), part("protocol", protocol))
}

/// `1 server`, `2 servers`, `no warnings`.
fn count(number: usize, what: &str) -> String {
    let many = what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"));
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {what}"),
        number => format!("{number} {many}"),
    }
}

#[cfg(test)]
mod tests;
