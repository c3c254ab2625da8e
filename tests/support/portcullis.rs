//! The built `portcullis serve`.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::child::Child;
use super::wait_for;

/// Where it listens.
enum Dial {
    Unix(PathBuf),
    Tcp(u16),
}

/// What a Portcullis is started in.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    /// Variables of its environment.
    pub(crate) environment: Vec<(String, String)>,
    /// A command that runs what follows it, in a namespace of its own say; empty for none.
    pub(crate) wrapper: Vec<String>,
}

impl Setting {
    /// With these variables.
    pub(crate) fn of(environment: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { environment: environment.iter().map(owned).collect(), wrapper: Vec::new() }
    }
}

/// A running Portcullis; ends when dropped.
pub(crate) struct Portcullis {
    process: Child,
    config: PathBuf,
    setting: Setting,
    dial: Dial,
    /// Standard output, line by line; it holds the audit and nothing else.
    lines: Arc<Mutex<Vec<String>>>,
}

impl Portcullis {
    /// Starts `serve` on a configuration file and waits until its Unix socket takes connections.
    pub(crate) fn start(config: &Path, socket: &Path) -> Self {
        Self::start_in(Setting::default(), config, socket)
    }

    /// As [`Self::start`], in a setting.
    pub(crate) fn start_in(setting: Setting, config: &Path, socket: &Path) -> Self {
        Self::launch(setting, config, Dial::Unix(socket.into()))
    }

    /// As [`Self::start`], with a listener on this loopback port.
    pub(crate) fn start_tcp(config: &Path, port: u16) -> Self {
        Self::launch(Setting::default(), config, Dial::Tcp(port))
    }

    fn launch(setting: Setting, config: &Path, dial: Dial) -> Self {
        let lines = Arc::default();
        let process = launch(config, &setting, &lines);
        let mut this = Self { process, config: config.into(), setting, dial, lines };
        this.await_listener();
        this
    }

    fn await_listener(&mut self) {
        let up = wait_for(Duration::from_secs(10), || {
            assert!(self.process.ended().is_none(), "expected portcullis to serve, it ended:\n{}", self.process.tail());
            let taken = match &self.dial {
                Dial::Unix(path) => UnixStream::connect(path).is_ok(),
                Dial::Tcp(port) => TcpStream::connect(("127.0.0.1", *port)).is_ok(),
            };
            taken.then_some(())
        });
        assert!(up.is_some(), "expected portcullis to listen within 10 s:\n{}", self.process.tail());
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it anew on the same configuration; its audit goes on in the same list.
    pub(crate) fn restart(&mut self) {
        self.process.kill();
        self.process = launch(&self.config, &self.setting, &self.lines);
        self.await_listener();
    }

    /// Freezes it.
    pub(crate) fn stop(&self) {
        self.process.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.process.signal(Signal::SIGCONT);
    }

    /// Sends it any signal, `SIGHUP` to reload say.
    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Its exit status, once it has ended.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.process.ended()
    }

    /// Waits for its end, which something else brings about.
    #[track_caller]
    pub(crate) fn await_end(&mut self, patience: Duration) -> std::process::ExitStatus {
        let ended = wait_for(patience, || self.process.ended());
        ended.unwrap_or_else(|| panic!("expected portcullis to end within {patience:?}:\n{}", self.process.tail()))
    }

    /// Its process id, for `/proc`.
    pub(crate) fn id(&self) -> u32 {
        self.process.inner.id()
    }

    /// Its log (standard error) so far.
    pub(crate) fn log(&self) -> String {
        self.process.tail()
    }

    /// The audit so far, once it holds `count` records; more than that, or a line that is not JSON, fails the test.
    pub(crate) fn audit(&self, count: usize) -> Vec<Value> {
        let read = || {
            let lines = self.lines.lock().expect("the reader did not panic").clone();
            (lines.len() >= count).then_some(lines)
        };
        let lines = wait_for(Duration::from_secs(5), read).unwrap_or_else(|| {
            panic!(
                "expected {count} audit records within 5 s, got {:?}\n{}",
                self.lines.lock().expect("no panic"),
                self.process.tail()
            )
        });
        assert_eq!(lines.len(), count, "expected {count} audit records, got {lines:#?}");
        let parse = |line: &String| {
            serde_json::from_str(line)
                .unwrap_or_else(|fault| panic!("expected JSON on standard output, got {fault}: {line}"))
        };
        lines.iter().map(parse).collect()
    }
}

impl Portcullis {
    /// How many audit records there are by now.
    pub(crate) fn audited(&self) -> usize {
        self.lines.lock().expect("the reader did not panic").len()
    }

    /// All audit records by now; a line that is not JSON fails the test.
    pub(crate) fn records(&self) -> Vec<Value> {
        let lines = self.lines.lock().expect("the reader did not panic").clone();
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON on standard output")).collect()
    }

    /// The first audit record from number `since` on that has this reason, once it is there.
    pub(crate) fn audit_of(&self, reason: &str, since: usize) -> Value {
        let find = || {
            let lines = self.lines.lock().expect("the reader did not panic").clone();
            let records = lines.iter().skip(since).filter_map(|line| serde_json::from_str::<Value>(line).ok());
            records.into_iter().find(|record| record["reason"] == reason)
        };
        wait_for(Duration::from_secs(5), find).unwrap_or_else(|| {
            panic!(
                "expected an audit record with reason {reason}, got {:#?}\n{}",
                self.lines.lock().expect("no panic"),
                self.process.tail()
            )
        })
    }
}

fn launch(config: &Path, setting: &Setting, lines: &Arc<Mutex<Vec<String>>>) -> Child {
    let program = env!("CARGO_BIN_EXE_portcullis");
    let words: Vec<&str> = setting.wrapper.iter().map(String::as_str).chain([program, "serve", "--config"]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(config).stdout(Stdio::piped());
    command.envs(setting.environment.iter().map(|(name, value)| (name, value)));
    let mut process = Child::spawn("portcullis", &mut command, config.with_extension("log"), Vec::new());
    let output = process.inner.stdout.take().expect("its output is piped");
    let lines = lines.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            lines.lock().expect("no holder panics").push(line);
        }
    });
    process
}
