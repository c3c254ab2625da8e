//! `portcullis explain`: what would be decided about a call, by which rung, and the exact answer on the wire.

mod input;
mod report;

#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use portcullis::config::{self, Loaded};
use portcullis::explain::{self, Explained, World};
use portcullis::identity::KeyStores;
use portcullis::ladder::{Server, Snapshot};

pub(super) use report::shown;

/// The request is answered here: refused, or a metadata document.
const ANSWERED: u8 = 3;
/// Nothing was decided: the command line, a file or the configuration is at fault.
pub(super) const FAULT: u8 = 2;

/// Options of `explain`.
#[derive(Args, Default)]
pub(super) struct ExplainArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The server that is called; may be left out where there is one.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Claims that are taken as verified: a file, `-`, or JSON that begins with `{`.
    #[arg(long, value_name = "FILE|JSON", conflicts_with = "token")]
    claims: Option<String>,
    /// Adds `iss`, `aud` and `exp` to the claims as the server expects them, where they are not said.
    #[arg(long, requires = "claims")]
    fill_claims: bool,
    /// A file with a bearer token, or `-`; it is verified as on the wire, with keys fetched from the configured address.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// The MCP method; may be left out with a capability.
    #[arg(long, value_name = "METHOD", conflicts_with = "request")]
    method: Option<String>,
    /// The capability: `tool:NAME`, `prompt:NAME`, `resource:NAME`, or the URI of a resource.
    #[arg(long, value_name = "LABEL|URI", conflicts_with = "request")]
    capability: Option<String>,
    /// The arguments: a file, `-`, or JSON that begins with `{` or `[`.
    #[arg(long, value_name = "FILE|JSON", conflicts_with = "request")]
    arguments: Option<String>,
    /// A whole HTTP/1.1 request instead: request line, headers, a blank line, the body.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    #[command(flatten)]
    world: WorldArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is asked of others rather than assumed.
#[derive(Args, Default)]
struct WorldArgs {
    /// List the server, as a real call would; else the record is taken for what it offers.
    #[arg(long)]
    live: bool,
    /// Ask the gates, as a real call would; else they are taken to have no objection.
    #[arg(long)]
    ask_gates: bool,
}

/// Explains one call. Exits with 0 when it is forwarded, 3 when it is answered here, 2 when nothing could be decided.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let explained = match decide(args) {
        Ok(explained) => explained,
        Err(faults) => {
            eprint!("{faults}");
            return Ok(ExitCode::from(FAULT));
        }
    };
    let text = if args.json { report::json_text(&explained)? } else { report::text(&explained)? };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if explained.answer.is_none() { ExitCode::SUCCESS } else { ExitCode::from(ANSWERED) })
}

/// Loads, asks and decides; an error is lines for standard error.
fn decide(args: &ExplainArgs) -> Result<Explained, String> {
    let snapshot = load(&args.config)?;
    let asked = input::asked(args, &snapshot).map_err(|fault| format!("portcullis: {fault}\n"))?;
    let world = World { live: args.world.live, gates: args.world.ask_gates };
    Ok(runtime()?.block_on(explain::explain(&snapshot, asked, world)))
}

/// What the configuration at `path` judges by; an error is its faults, one a line.
pub(super) fn load(path: &Path) -> Result<Arc<Snapshot>, String> {
    let Loaded { serving, faults, .. } = config::load(path, &KeyStores::new());
    match serving {
        Some(serving) => Ok(Arc::new(serving.snapshot)),
        None => Err(faults.iter().map(|fault| format!("{fault}\n")).collect()),
    }
}

/// A runtime for what is fetched.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("portcullis: cannot start the runtime: {error}\n"))
}

/// The server of this name, or the only one.
pub(super) fn server<'s>(snapshot: &'s Snapshot, name: Option<&str>) -> Result<&'s Arc<Server>, String> {
    let servers = snapshot.servers();
    let found = match (name, servers) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), servers) => servers.iter().find(|server| &*server.name == name),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = servers.iter().map(|server| &*server.name).collect();
        let wanted = name.map_or_else(|| "the name of a server".to_owned(), |name| format!("a server `{name}`"));
        format!("expected {wanted}; the configuration has `{}`", names.join("`, `"))
    })
}
