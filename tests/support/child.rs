//! A child process that cannot outlive its test.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Linux's numbers of the capabilities that pass over the modes of files.
const CAP_DAC_OVERRIDE: nix::libc::c_ulong = 1;
const CAP_DAC_READ_SEARCH: nix::libc::c_ulong = 2;

/// A running program whose standard error goes to a file, printed when a test fails.
pub(crate) struct Child {
    pub(crate) inner: std::process::Child,
    name: &'static str,
    logs: Vec<PathBuf>,
}

impl Child {
    /// Starts `command` with its standard error in `stderr`; standard output stays as the caller set it. `logs` are the files
    /// whose ends are printed when the test fails.
    pub(crate) fn spawn(name: &'static str, command: &mut Command, stderr: PathBuf, mut logs: Vec<PathBuf>) -> Self {
        let file = File::options().create(true).append(true).open(&stderr).expect("the log file opens");
        command.stdin(Stdio::null()).stderr(file);
        // SAFETY: prctl(2) is async-signal-safe and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| {
                // A mode keeps out what runs as root as well, as in production, where nothing does. Who is not root cannot
                // give these up, and has not got them.
                for capability in [CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH] {
                    nix::libc::prctl(nix::libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
                }
                Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)
            });
        }
        let inner = command.spawn().unwrap_or_else(|fault| panic!("expected {command:?} to start, got {fault}"));
        logs.push(stderr);
        Self { inner, name, logs }
    }

    /// Sends a signal; `SIGSTOP` freezes the program, `SIGCONT` lets it go on.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap_or_else(|fault| panic!("expected {} to take {signal}, got {fault}", self.name));
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.inner.kill();
        let _ = self.inner.wait();
    }

    /// Its exit status when it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.inner.try_wait().expect("its state can be read")
    }

    /// The last lines of its logs.
    pub(crate) fn tail(&self) -> String {
        let mut text = String::new();
        for log in &self.logs {
            let whole = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
            let lines: Vec<&str> = whole.lines().collect();
            let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
            text.push_str(&format!("--- {} {}\n{}\n", self.name, log.display(), last.join("\n")));
        }
        text
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.inner.id().try_into().expect("a process id"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("{}", self.tail());
        }
    }
}
