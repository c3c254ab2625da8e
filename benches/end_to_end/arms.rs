//! What is compared: Envoy alone, with the no-op processor, with Portcullis, each behind a port of its own.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::load::{Load, Slice};
use crate::statistics::quantile;
use crate::support::child::Child;
use crate::support::envoy::{EDGE, Envoy, without_filter};
use crate::support::stack::edge_edits;
use crate::support::{Idp, Upstream, fixture, wait_for};
use crate::wire::Wire;
use crate::{authz, callgrind, collector, cpu, noop, setting, support, upstream};

/// How long a processor may take to listen; under callgrind everything takes fifty times as long.
const PATIENCE: Duration = Duration::from_mins(1);
/// How many arms there are.
pub(crate) const COUNT: usize = 8;

/// What all arms share.
pub(crate) struct Stage {
    pub(crate) load: Load,
    idp: Idp,
    upstream: u16,
    lister: Upstream,
    /// The port of the OpenTelemetry collector.
    collector: u16,
    /// The build of Portcullis that is measured.
    portcullis: PathBuf,
    /// Whether processors run under callgrind.
    counted: bool,
    dir: TempDir,
}

/// One slice's figures: calls per second, microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// CPU of Envoy per call.
    pub(crate) envoy: f64,
    /// CPU of the processor per call; 0 where there is none.
    pub(crate) processor: f64,
}

/// One of the compared.
pub(crate) struct Arm {
    pub(crate) name: &'static str,
    envoy: Envoy,
    processor: Option<Child>,
    /// Audit lines that Portcullis wrote.
    audited: Option<Arc<AtomicU64>>,
    calls: u64,
    pub(crate) token: String,
    request: Arc<[u8]>,
    wires: Vec<Wire>,
    pub(crate) samples: Vec<Sample>,
}

/// Portcullis without an Envoy; ends when dropped.
pub(crate) struct Alone {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Alone {
    pub(crate) fn pid(&self) -> u32 {
        self.child.inner.id()
    }
}

impl Stage {
    pub(crate) fn start(portcullis: &Path, counted: bool) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let portcullis = portcullis.to_owned();
        let lister = setting::lister(setting::USUAL.tools);
        let (load, idp, collector) = (Load::new(), Idp::start(), collector::start());
        Self { load, idp, upstream: upstream::start(), lister, collector, portcullis, counted, dir }
    }

    /// All arms with `only` in their names, started and checked with one call each.
    pub(crate) fn arms(&self, only: &str) -> Vec<Arm> {
        let without_lock = without_filter(EDGE, "envoy.filters.http.rbac");
        let alone = without_filter(&without_lock, "envoy.filters.http.ext_proc");
        let authz = authz::instead_of_ext_proc(&without_lock);
        let portcullis = |screen, otlp| Processor::Portcullis { screen, otlp };
        let all = [
            ("envoy alone", &*alone, Processor::None),
            ("ext_authz", &*authz, Processor::Authz),
            ("no-op, unscreened", &*without_lock, Processor::Noop(noop::UNSCREENED)),
            ("no-op, screened", &*without_lock, Processor::Noop(noop::SCREENED)),
            ("no-op, worded", EDGE, Processor::Noop(noop::WORDED)),
            ("portcullis, unscreened", EDGE, portcullis(false, None)),
            ("portcullis, screened", EDGE, portcullis(true, None)),
            ("portcullis, telemetry", EDGE, portcullis(true, Some(self.collector))),
        ];
        let wanted = all.into_iter().filter(|(name, ..)| name.contains(only));
        wanted.map(|(name, config, processor)| self.arm(name, config, processor)).collect()
    }

    /// The arms that streams of events are compared in, none of them checked yet.
    pub(crate) fn streaming_arms(&self) -> Vec<Arm> {
        let without_lock = without_filter(EDGE, "envoy.filters.http.rbac");
        let portcullis = Processor::Portcullis { screen: true, otlp: None };
        vec![
            self.arm("envoy alone", &without_filter(&without_lock, "envoy.filters.http.ext_proc"), Processor::None),
            self.arm("no-op, screened", &without_lock, Processor::Noop(noop::SCREENED)),
            self.arm("portcullis, screened", EDGE, portcullis),
        ]
    }

    /// One more as screened, unchecked.
    pub(crate) fn enduring(&self) -> Arm {
        self.arm("portcullis, enduring", EDGE, Processor::Portcullis { screen: true, otlp: None })
    }

    /// Arms that are made from now on have this upstream.
    pub(crate) fn send_to(&mut self, port: u16) {
        self.upstream = port;
    }

    /// Portcullis without an Envoy, listening.
    pub(crate) fn portcullis(&self, name: &str) -> Alone {
        let dir = self.dir.path().join(name);
        std::fs::create_dir(&dir).expect("a directory for the process");
        let socket = dir.join("ext_proc.sock");
        let processor = Processor::Portcullis { screen: true, otlp: None };
        let child = processor.start(self, name, &dir, &socket, Some(&Arc::default()));
        Alone { child: child.expect("a process"), socket }
    }

    pub(crate) fn token(&self, claims: &serde_json::Value) -> String {
        self.idp.token(claims)
    }

    /// The shipped edge configuration, with or without filters, in front of one processor.
    fn arm(&self, name: &'static str, config: &str, processor: Processor) -> Arm {
        let dir = self.dir.path().join(name.replace([' ', ','], "-"));
        std::fs::create_dir(&dir).expect("a directory for the arm");
        let socket = dir.join("ext_proc.sock");
        let audited = matches!(processor, Processor::Portcullis { .. }).then(Arc::default);
        let processor = processor.start(self, name, &dir, &socket, audited.as_ref());
        let edits = edge_edits(&socket, self.upstream);
        // With the shipped limit Envoy would refuse nothing here; it is named so that a change of it is noticed.
        assert!(config.contains("request_body_buffer_limit"), "expected the shipped configuration");
        let edits = edits.each_ref().map(|(from, to)| used(config, from, to));
        let program = support::envoy::binary();
        let command = if self.counted { callgrind::command(&envoys(name), &program) } else { Command::new(program) };
        let envoy = Envoy::start_by(command, PATIENCE, config, &edits);
        let token = self.idp.token(&json!({"groups": ["support", "emea"]}));
        Arm {
            name,
            envoy,
            processor,
            audited,
            calls: 0,
            token,
            request: Arc::new([]),
            wires: Vec::new(),
            samples: Vec::new(),
        }
    }
}

/// The name of an arm's Envoy among profiles.
fn envoys(name: &str) -> String {
    format!("{name} envoy")
}

/// An edit, or none where the place went with its filter.
fn used<'a>(config: &str, from: &'a str, to: &'a str) -> (&'a str, &'a str) {
    if config.contains(from) { (from, to) } else { ("admin:", "admin:") }
}

/// What stands beside Envoy.
enum Processor {
    None,
    Noop(&'static str),
    Authz,
    /// `otlp`: the port of a collector that metrics, traces and audit go to besides.
    Portcullis {
        screen: bool,
        otlp: Option<u16>,
    },
}

impl Processor {
    fn start(
        self,
        stage: &Stage,
        name: &str,
        dir: &Path,
        socket: &Path,
        audited: Option<&Arc<AtomicU64>>,
    ) -> Option<Child> {
        let program = |path: &Path| if stage.counted { callgrind::command(name, path) } else { Command::new(path) };
        let mut command = match self {
            Self::None => return None,
            Self::Noop(phases) => {
                let mut command = program(&std::env::current_exe().expect("this program"));
                command.args([noop::ROLE.as_ref(), socket.as_os_str(), phases.as_ref()]);
                command
            }
            Self::Authz => {
                let mut command = program(&std::env::current_exe().expect("this program"));
                command.args([authz::ROLE.as_ref(), socket.as_os_str(), "".as_ref()]);
                command
            }
            Self::Portcullis { screen, otlp } => {
                let config = setting::write_files(dir, setting::USUAL, screen, &stage.idp, &stage.lister);
                if let Some(port) = otlp {
                    setting::export_to(&config, port);
                }
                let mut command = program(&stage.portcullis);
                command.arg("serve").arg("--config").arg(config);
                command
            }
        };
        let mut child =
            Child::spawn("processor", command.stdout(Stdio::piped()), dir.join("processor.log"), Vec::new());
        if let Some(audited) = audited {
            count_lines(&mut child, Arc::clone(audited));
        }
        // Asked often: how long this takes is measured.
        let end = Instant::now() + PATIENCE;
        let up = loop {
            assert!(child.ended().is_none(), "expected the processor to serve, it ended:\n{}", child.tail());
            match UnixStream::connect(socket) {
                Ok(connected) => break Some(connected),
                Err(_) if Instant::now() >= end => break None,
                Err(_) => std::thread::sleep(Duration::from_micros(500)),
            }
        };
        assert!(up.is_some(), "expected a socket at {} within {PATIENCE:?}:\n{}", socket.display(), child.tail());
        Some(child)
    }
}

/// Reads the audit as a log collector would: a pipe that is emptied, and here also counted.
fn count_lines(child: &mut Child, lines: Arc<AtomicU64>) {
    let mut output = child.inner.stdout.take().expect("its output is piped");
    std::thread::spawn(move || {
        let mut piece = vec![0; 256 * 1024];
        while let Ok(read @ 1..) = output.read(&mut piece) {
            let ends = piece[..read].split(|byte| *byte == b'\n').count() - 1;
            lines.fetch_add(ends as u64, Ordering::Relaxed);
        }
    });
}

impl Arm {
    /// From now on sends calls of this size; one is sent and its answer looked at.
    pub(crate) fn send(&mut self, bytes: usize) {
        let request = fixture::post(&setting::call(0, bytes)).bearer(&self.token);
        let reply = request.send(self.envoy.port);
        assert_eq!(reply.status, 200, "{}: {reply}", self.name);
        assert_eq!(reply.json()["result"]["isError"], json!(false), "{}: {reply}", self.name);
        self.calls += 1;
        self.request = request.bytes().into();
    }

    pub(crate) fn connect(&mut self, load: &Load, connections: usize) {
        self.wires = load.connect(self.envoy.port, connections);
    }

    /// The port of its Envoy.
    pub(crate) fn port(&self) -> u16 {
        self.envoy.port
    }

    pub(crate) fn envoy(&self) -> &Envoy {
        &self.envoy
    }

    /// The process id of what stands beside Envoy.
    pub(crate) fn processor(&self) -> Option<u32> {
        self.processor.as_ref().map(|child| child.inner.id())
    }

    /// Calls that were answered so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// One slice under load.
    pub(crate) fn slice(&mut self, load: &Load, length: Duration) {
        let before = self.cpu();
        let Slice { took, latencies } = load.run(&mut self.wires, &self.request, length);
        let after = self.cpu();
        let calls = latencies.len() as f64;
        self.calls += latencies.len() as u64;
        let mut sorted: Vec<f64> = latencies.into_iter().map(|ns| ns as f64 / 1000.0).collect();
        sorted.sort_by(f64::total_cmp);
        let per_call = |before: u64, after: u64| after.saturating_sub(before) as f64 / 1000.0 / calls;
        self.samples.push(Sample {
            rate: calls / took.as_secs_f64(),
            p50: quantile(&sorted, 0.5),
            p99: quantile(&sorted, 0.99),
            p999: quantile(&sorted, 0.999),
            envoy: per_call(before.0, after.0),
            processor: per_call(before.1, after.1),
        });
    }

    /// Instructions per call of a slice, of Envoy and of the processor beside it, counted by callgrind.
    pub(crate) fn instructions(&mut self, load: &Load, length: Duration) -> (u64, Option<u64>) {
        let counted = [(envoys(self.name), Some(self.envoy.pid())), (self.name.to_owned(), self.processor())];
        self.connect(load, 4);
        load.run(&mut self.wires, &self.request, length);
        counted.iter().filter_map(|(_, pid)| *pid).for_each(callgrind::zero);
        let calls = load.run(&mut self.wires, &self.request, length).latencies.len() as u64;
        let [envoy, processor] = counted.map(|(name, pid)| pid.map(|pid| callgrind::dump(&name, pid) / calls));
        (envoy.unwrap_or_default(), processor)
    }

    fn cpu(&self) -> (u64, u64) {
        let processor = self.processor.as_ref().map_or(0, |child| cpu::nanoseconds(child.inner.id()));
        (cpu::nanoseconds(self.envoy.pid()), processor)
    }

    pub(crate) fn figures(&self, figure: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }

    /// Says whether every call left its audit record.
    pub(crate) fn account(&self) {
        let Some(audited) = &self.audited else { return };
        wait_for(Duration::from_secs(2), || (audited.load(Ordering::Relaxed) >= self.calls).then_some(()));
        println!("{}: {} audit records for {} calls", self.name, audited.load(Ordering::Relaxed), self.calls);
    }
}
