//! `portcullis record`: writes down what a server offers, for a person to price; `--check` says what changed since.
//!
//! Exit codes: 0 recorded or unchanged, 1 changed (`--check`), 2 could not be done, and then nothing was written.

mod files;
mod report;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgGroup, Args};
use url::Url;

use portcullis::config::recording::{self, Existing};
use portcullis::config::{Located, Recording};
use portcullis::record::{Approved, Changes, Listing};
use portcullis::upstream::client::{Progress, Settings};
use portcullis::upstream::{Client, CredentialSource, SecretSource};

/// How often a walk that goes on tells where it is.
const TELL: Duration = Duration::from_secs(2);

/// Options of `record`.
#[derive(Args)]
#[command(group = ArgGroup::new("whom").required(true).args(["config", "url"]))]
pub struct RecordArgs {
    /// The configuration file that names the server and its record.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server's name there; may be left out when there is one.
    #[arg(long, value_name = "NAME", requires = "config")]
    server: Option<String>,
    /// The server's URL, for a recording before there is a configuration.
    #[arg(long, value_name = "URL", requires = "out")]
    url: Option<Url>,
    /// Where its record goes: DIR/NAME.yaml and DIR/NAME.json.
    #[arg(long, value_name = "DIR/NAME", requires = "url")]
    out: Option<PathBuf>,
    /// A file that holds the bearer token to present.
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "credential_env")]
    credential_file: Option<PathBuf>,
    /// An environment variable that holds the bearer token to present.
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    credential_env: Option<String>,
    /// Writes nothing; says what changed since the recording and exits with 1 when anything did.
    #[arg(long)]
    check: bool,
    /// With --check: as JSON, for machines.
    #[arg(long, requires = "check")]
    json: bool,
}

/// Why nothing was done; shown on standard error.
enum Failure {
    Located(Vec<Located>),
    Plain(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Located(faults) => faults.iter().try_for_each(|fault| writeln!(f, "{fault}")),
            Self::Plain(message) => writeln!(f, "portcullis: {message}"),
        }
    }
}

/// Lists the server and writes or compares.
///
/// # Errors
/// Standard output cannot be written, or there is no runtime.
pub fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let mut out = Vec::new();
    let code = match runtime.block_on(done(args, &mut out)) {
        Ok(code) => code,
        Err(failure) => {
            eprint!("{failure}");
            eprintln!("portcullis: nothing was written");
            ExitCode::from(2)
        }
    };
    std::io::stdout().lock().write_all(&out)?;
    Ok(code)
}

async fn done(args: &RecordArgs, out: &mut Vec<u8>) -> Result<ExitCode, Failure> {
    let Recording { name, settings, file } = target(args)?;
    let url = settings.url.to_string();
    // One list after the other, so that where a long walk stands can be told.
    let settings = Settings { concurrency: 1, ..settings };
    // Looked at before the walk: who waits for a long one should not learn then that it was for nothing.
    existing(&file)?;
    let listing = listed(&Client::new(settings)).await.map_err(|fault| Failure::Plain(format!("{url}: {fault}")))?;
    let before = existing(&file)?;
    if args.check {
        let Some(before) = before else {
            let message = format!("expected a record at {}, found none; record the server first", file.display());
            return Err(Failure::Plain(message));
        };
        let changes = Changes::between(&before.approved, &listing);
        let text = if args.json { report::json(&changes, &listing) } else { report::text(&changes, &listing) };
        out.extend_from_slice(text.as_bytes());
        return Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let text = write(&name, &url, &file, before.as_ref(), &listing)?;
    out.extend_from_slice(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn existing(file: &Path) -> Result<Option<Existing>, Failure> {
    Existing::read(file).map_err(Failure::Located)
}

/// Whom to list and where the record lies.
fn target(args: &RecordArgs) -> Result<Recording, Failure> {
    match (&args.config, &args.url, &args.out) {
        (Some(config), ..) => recording::recording(config, args.server.as_deref()).map_err(Failure::Located),
        (None, Some(url), Some(out)) => by_url(args, url, out),
        _ => Err(Failure::Plain("expected --config, or --url with --out".to_owned())),
    }
}

fn by_url(args: &RecordArgs, url: &Url, out: &Path) -> Result<Recording, Failure> {
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !plain {
        return Err(Failure::Plain(
            "--url: expected an absolute http or https URL without user and fragment".to_owned(),
        ));
    }
    let name = out.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let name = name.ok_or_else(|| Failure::Plain("--out: expected DIR/NAME".to_owned()))?;
    let secret = SecretSource { file: args.credential_file.clone(), env: args.credential_env.clone() };
    let source =
        if secret == SecretSource::default() { CredentialSource::None } else { CredentialSource::Bearer(secret) };
    let credential = source.load(Path::new("")).map_err(|fault| Failure::Plain(fault.to_string()))?;
    let settings = Settings {
        url: url.clone(),
        credential,
        timeout: Duration::from_secs(5),
        page: 1024 * 1024,
        depth: 64,
        concurrency: 1,
        tls: None,
    };
    Ok(Recording { file: out.with_file_name(format!("{name}.yaml")), name, settings })
}

/// Walks everything; tells where it is when that takes long.
async fn listed(client: &Client) -> Result<Listing, portcullis::upstream::ListingFault> {
    let last: Mutex<Option<Progress>> = Mutex::new(None);
    let progress = |step: Progress| {
        if let Ok(mut last) = last.lock() {
            *last = Some(step);
        }
    };
    let walk = client.survey(&progress);
    tokio::pin!(walk);
    loop {
        tokio::select! {
            listing = &mut walk => return listing,
            () = tokio::time::sleep(TELL) => {
                if let Some(Progress { method, page, entries }) = last.lock().ok().and_then(|last| *last) {
                    eprintln!("portcullis: {}, page {page}: {entries} entries so far", method.as_str());
                }
            }
        }
    }
}

/// Records: what changed, and the two files. What to print.
fn write(name: &str, url: &str, file: &Path, before: Option<&Existing>, listing: &Listing) -> Result<String, Failure> {
    let nothing = Approved::default();
    let changes = Changes::between(before.map_or(&nothing, |before| &before.approved), listing);
    let time = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let files = files::Files::new(name, url, &time, file, before, listing)?;
    if files.is_unchanged() {
        return Ok(report::unchanged(&changes, files.undecided));
    }
    files.write().map_err(|error| Failure::Plain(format!("{error:#}")))?;
    let wrote = format!("wrote {} and {}", files.yaml.path.display(), files.json.path.display());
    let left = match files.undecided {
        0 => String::new(),
        undecided => format!(", {undecided} of them to be priced (`permission: TODO`)"),
    };
    Ok(format!("{}{wrote}: {} capabilities{left}\n", report::differences(&changes, listing), files.capabilities))
}
