//! One child process of the demo: start it, wait until it is ready, read its log, end it.
//!
//! None may outlive the demo. The ordinary ways out end each child and reap it; dropping one kills it; and where the
//! machine has `setpriv`, the kernel kills the children of a demo that was itself killed.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

/// How long a part may take to become ready: a cold Python or a debug build on a busy machine.
const START: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
/// How much of a log an error text shows.
const TAIL_LINES: usize = 15;

/// A running part of the demo.
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Start `program`; both its outputs go to `log`. `hint` tells what to do when the program is not there.
    pub(super) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[&str],
        log: PathBuf,
        hint: &str,
    ) -> anyhow::Result<Self> {
        if !program.is_file() {
            bail!("{name}: expected a program at {}, found none. {hint}", program.display());
        }
        // Not `canonicalize`: a virtual environment is found by the path of its python, which is a symbolic link.
        let program = std::path::absolute(program)
            .with_context(|| format!("{name}: the path {} cannot be made absolute", program.display()))?;
        // Append, so that two writers (Envoy opens /dev/stdout a second time) do not overwrite each other.
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("{name}: could not create its log {}", log.display()))?;
        let child = command(&program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().with_context(|| format!("{name}: could not share its log"))?)
            .stderr(output)
            // Ctrl-C goes to the demo alone, which then ends its children in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name}: could not start {}", program.display()))?;
        Ok(Self { name, child, log })
    }

    /// Wait until `probe` says yes; an error when the process ends first or takes longer than a minute. `what` names
    /// what the probe waits for.
    pub(super) async fn ready(&mut self, what: &str, probe: impl AsyncFn() -> bool) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().with_context(|| format!("{}: lost track of it", self.name))? {
                bail!("{}: expected {what}, but it ended first ({status}). {}", self.name, self.log_tail());
            }
            if probe().await {
                return Ok(());
            }
            if started.elapsed() > START {
                let seconds = START.as_secs();
                bail!("{}: expected {what} within {seconds} s, but it is not there. {}", self.name, self.log_tail());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Wait until the process ends on its own, and tell so.
    pub(super) async fn exited(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => anyhow::anyhow!("{} ended on its own ({status}). {}", self.name, self.log_tail()),
            Err(error) => anyhow::Error::new(error).context(format!("{}: lost track of it", self.name)),
        }
    }

    /// End the process and wait until it is gone.
    pub(super) async fn stop(&mut self) {
        // An error means that it is gone already, which is what was wanted.
        let _ = self.child.kill().await;
    }

    /// The last lines of its log, introduced, for an error text.
    pub(super) fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        if lines.is_empty() {
            return format!("The log of {} is empty.", self.name);
        }
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("The log of {} ends with:\n  | {}", self.name, tail.join("\n  | "))
    }

    /// Its process id, while it runs.
    #[cfg(test)]
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

/// The command that runs `program`, through `setpriv` where that exists so that the kernel kills it with its parent.
pub(super) fn command(program: &Path) -> Command {
    let Some(setpriv) = find_on_path("setpriv") else {
        return Command::new(program);
    };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
