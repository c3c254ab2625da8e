//! `portcullis demo`: the whole chain on loopback, and a story told over it.
//!
//! An identity provider, an upstream MCP server made with a real SDK, Portcullis and Envoy are started on free ports;
//! then each step of the story sends a real request through Envoy, prints what was sent and what came back, and checks
//! it. A step that does not come out as it must ends the demo with exit code 1, so that the demo is a test as well.
//!
//! | file | what it is for |
//! |---|---|
//! | `stage.rs` | the temporary folder, the ports, the files in it, the four parts in their order |
//! | `process.rs` | one child process: start, readiness, log, end |
//! | `identity_provider.rs` | keys, their JWKS endpoint, tokens |
//! | `client.rs` | the requests of the story and the connection they go over |
//! | `watch.rs` | what the upstream saw |
//! | `narrator.rs` | how all that is printed |
//! | `story.rs` | the steps |
//! | `story/misbehaviour.rs` | the steps in which the upstream, or a model, does not keep to what was approved |

mod client;
mod identity_provider;
mod narrator;
mod process;
mod stage;
mod story;
mod watch;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use narrator::Narrator;
use stage::Stage;
use story::Cast;

/// What `portcullis demo` takes on its command line.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// End after the story, instead of keeping everything running until Ctrl-C
    #[arg(long)]
    once: bool,
    /// The Envoy to start
    #[arg(long, value_name = "PATH", default_value = ".tools/envoy")]
    envoy: PathBuf,
    /// The Python to start the upstream server with; it needs the packages `mcp` and `uvicorn`
    #[arg(long, value_name = "PATH", default_value = ".tools/bin/python")]
    python: PathBuf,
}

/// Run the demo from the repository's root: start the parts, tell the story and, unless `--once`, keep running.
///
/// # Errors
///
/// When a part cannot be started (the text says which and shows the end of its log), when a step of the story does not
/// come out as it must, when a part ends on its own later, or when a signal comes before the story has ended. Nothing
/// is left running or lying about in any case.
pub fn run(args: DemoArgs) -> anyhow::Result<()> {
    // One thread, this one: the parent-death signal of the children is tied to the thread that starts them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the async runtime")?;
    runtime.block_on(async {
        let mut stage = Stage::new()?;
        let told = Cell::new(false);
        let outcome = tokio::select! {
            biased;
            name = interrupted() => match name {
                Ok(_) if told.get() => Ok(()),
                Ok(name) => Err(anyhow::anyhow!("stopped by {name} before the story had ended")),
                Err(error) => Err(error),
            },
            outcome = play(args, &mut stage, &told) => outcome,
        };
        stage.clear().await;
        outcome
    })
}

/// Everything from an empty stage to the end of the demo.
async fn play(args: DemoArgs, stage: &mut Stage, told: &Cell<bool>) -> anyhow::Result<()> {
    let DemoArgs { once, envoy, python } = args;
    let stdout = std::io::stdout();
    let mut narrator = Narrator::new(stdout.lock(), stdout.is_terminal());
    let idp = stage.set(&python, &envoy, &mut narrator).await?;
    let cast = Cast::new(&idp, stage.ports().envoy, stage.config())?;
    let outcome = story::tell(&cast, stage.watch(), &mut narrator).await;
    outcome.map_err(|error| stage.with_logs(&error))?;
    told.set(true);
    if once {
        return Ok(());
    }
    invite(&cast, stage, &mut narrator)?;
    Err(stage.first_exit().await)
}

/// Print what a reader needs to try calls of their own.
fn invite<W: Write>(cast: &Cast, stage: &Stage, narrator: &mut Narrator<W>) -> anyhow::Result<()> {
    let ports = stage.ports();
    narrator.heading("Now you")?;
    narrator.plain("Everything keeps running until Ctrl-C:")?;
    for (what, address) in [
        ("Envoy (call this)", format!("http://127.0.0.1:{}/mcp", ports.envoy)),
        ("Envoy's admin page", format!("http://127.0.0.1:{}/", ports.envoy_admin)),
        ("upstream MCP server", format!("http://127.0.0.1:{}/mcp", ports.upstream)),
        ("identity provider's keys", format!("http://127.0.0.1:{}/jwks.json", ports.identity_provider)),
        ("configuration and logs", stage.folder().display().to_string()),
    ] {
        narrator.plain(&format!("  {what:<28}{address}"))?;
    }
    narrator.plain("")?;
    narrator.plain(&format!("ANA={}   # reader", cast.ana))?;
    narrator.plain(&format!("BO={}   # editor", cast.bo_writing))?;
    for request in story::to_try() {
        narrator.plain(&format!("\n{}", request.as_curl(ports.envoy)))?;
    }
    narrator.plain("\nMake the upstream misbehave, and behave again (upstream.py tells the other ways):")?;
    for how in ["rug-pull", "no"] {
        narrator.plain(&client::Request::misbehave(how).as_curl(ports.upstream))?;
    }
    narrator.plain("")?;
    Ok(())
}

/// Wait for a signal that asks for the end, and say which.
async fn interrupted() -> anyhow::Result<&'static str> {
    let mut interrupt = signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    let mut hangup = signal(SignalKind::hangup()).context("could not listen for SIGHUP")?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
        _ = hangup.recv() => "SIGHUP",
    })
}
