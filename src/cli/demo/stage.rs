//! Where the demo plays: a temporary folder, free ports, the shipped files with those ports put in, and the four parts.

use std::fs::DirBuilder;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::net::{TcpStream, UnixStream};

use super::client::{Connection, Request};
use super::identity_provider::IdentityProvider;
use super::narrator::Narrator;
use super::process::Process;
use super::watch::Watch;

/// The files of the demo below the repository's root, copied to the stage as they are.
const FILES: [&str; 3] = ["policy.yaml", "upstream-token", "records/cases.json"];
const EXAMPLE: &str = "examples/demo";
const EDGE: &str = "deploy/envoy/edge.yaml";
/// The socket that both shipped configurations name.
const SHIPPED_SOCKET: &str = "/run/portcullis/ext_proc.sock";

/// The loopback ports of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) envoy: u16,
    pub(super) envoy_admin: u16,
    pub(super) upstream: u16,
    pub(super) identity_provider: u16,
}

/// Everything that runs and lies about during a demo. Dropping it ends and removes all of it.
pub(super) struct Stage {
    folder: Folder,
    ports: Ports,
    reserved: Option<TcpListener>,
    watch: Watch,
    processes: Vec<Process>,
}

impl Stage {
    /// Make the folder and choose the ports; nothing is started yet.
    pub(super) fn new() -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        // All are held until the last is chosen, so that they differ.
        let [envoy, envoy_admin, upstream, idp] = [free()?, free()?, free()?, free()?];
        let ports =
            Ports { envoy: envoy.1, envoy_admin: envoy_admin.1, upstream: upstream.1, identity_provider: idp.1 };
        let watch = Watch::new(ports.upstream, folder.path.join("upstream.log"));
        Ok(Self { folder, ports, reserved: Some(idp.0), watch, processes: Vec::new() })
    }

    /// The ports of this run.
    pub(super) fn ports(&self) -> Ports {
        self.ports
    }

    /// Where the configuration and the logs are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Where Portcullis's configuration is.
    pub(super) fn config(&self) -> PathBuf {
        self.folder.path.join("portcullis.yaml")
    }

    /// What tells which requests reached the upstream.
    pub(super) fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Write the files and start the four parts, each only when those it needs are ready.
    pub(super) async fn set<W: Write>(
        &mut self,
        python: &Path,
        envoy: &Path,
        narrator: &mut Narrator<W>,
    ) -> anyhow::Result<IdentityProvider> {
        self.write_files()?;
        narrator.heading("Setting the stage")?;
        let idp = self.start_identity_provider()?;
        narrator.plain(&format!("  identity provider    127.0.0.1:{}", self.ports.identity_provider))?;
        self.start_upstream(python).await?;
        narrator.plain(&format!("  upstream MCP server  127.0.0.1:{}", self.ports.upstream))?;
        self.start_portcullis().await?;
        narrator.plain("  Portcullis           on a Unix socket")?;
        self.start_envoy(envoy).await?;
        narrator.plain(&format!("  Envoy                127.0.0.1:{}", self.ports.envoy))?;
        Ok(idp)
    }

    /// Wait until one part ends on its own, and tell which.
    pub(super) async fn first_exit(&mut self) -> anyhow::Error {
        let exits = self.processes.iter_mut().map(|process| Box::pin(process.exited()));
        futures_util::future::select_all(exits).await.0
    }

    /// The same error with the end of each log, for a step of the story that did not come out.
    pub(super) fn with_logs(&self, error: &anyhow::Error) -> anyhow::Error {
        let tails: Vec<String> = self.processes.iter().map(Process::log_tail).collect();
        anyhow::anyhow!("{error:#}\n\n{}", tails.join("\n"))
    }

    /// End every part, the last started first, and wait until each is gone.
    pub(super) async fn clear(&mut self) {
        for mut process in self.processes.drain(..).rev() {
            process.stop().await;
        }
    }

    fn start_identity_provider(&mut self) -> anyhow::Result<IdentityProvider> {
        let listener = self.reserved.take().context("the identity provider was started already")?;
        let resource = format!("http://127.0.0.1:{}/mcp", self.ports.envoy);
        let idp = IdentityProvider::new(self.ports.identity_provider, resource)?;
        listener.set_nonblocking(true).context("the identity provider's socket cannot be made non-blocking")?;
        idp.serve(tokio::net::TcpListener::from_std(listener).context("the identity provider cannot listen")?);
        Ok(idp)
    }

    async fn start_upstream(&mut self, python: &Path) -> anyhow::Result<()> {
        let port = self.ports.upstream;
        let script = shipped(EXAMPLE, "upstream.py")?;
        let arguments = [&*script.to_string_lossy(), "--port", &port.to_string()];
        let hint = "`make demo` installs one there with the packages that upstream.py needs; or pass --python PATH.";
        let log = self.folder.path.join("upstream.log");
        let process = self.add(Process::start("upstream MCP server", python, &arguments, log, hint)?);
        let listens = async || TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        process.ready(&format!("it to listen on 127.0.0.1:{port}"), listens).await
    }

    async fn start_portcullis(&mut self) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("cannot tell where this program lies")?;
        let (config, socket) = (self.config(), self.folder.socket());
        let arguments = ["serve", "--config", &*config.to_string_lossy()];
        let log = self.folder.path.join("portcullis.log");
        let process = self.add(Process::start("Portcullis", &program, &arguments, log, "Build it again.")?);
        let listens = async || UnixStream::connect(&socket).await.is_ok();
        process.ready(&format!("it to listen on {}", socket.display()), listens).await
    }

    async fn start_envoy(&mut self, envoy: &Path) -> anyhow::Result<()> {
        let port = self.ports.envoy_admin;
        let config = self.folder.path.join("envoy.yaml");
        let config = config.to_string_lossy();
        // Without a hot-restart region two demos can run at the same time.
        let arguments = ["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning", "-c", &*config];
        let hint = "`make demo` installs one there; or pass --envoy PATH.";
        let log = self.folder.path.join("envoy.log");
        let process = self.add(Process::start("Envoy", envoy, &arguments, log, hint)?);
        let live = async || match Connection::open(port).await {
            Ok(mut admin) => admin.send(&Request::get("/ready")).await.is_ok_and(|answer| answer.status.is_success()),
            Err(_) => false,
        };
        process.ready(&format!("its admin page on 127.0.0.1:{port} to say that it is ready"), live).await
    }

    fn add(&mut self, process: Process) -> &mut Process {
        self.processes.push(process);
        let last = self.processes.len() - 1;
        &mut self.processes[last]
    }

    fn write_files(&self) -> anyhow::Result<()> {
        std::fs::create_dir(self.folder.path.join("records")).context("cannot make a folder on the stage")?;
        for name in FILES {
            let from = shipped(EXAMPLE, name)?;
            std::fs::copy(&from, self.folder.path.join(name))
                .with_context(|| format!("could not copy {}", from.display()))?;
        }
        let socket = self.folder.socket().display().to_string();
        let ports = self.ports;
        let loopback = |port: u16| format!("127.0.0.1:{port}");
        self.write_substituted(
            &shipped(EXAMPLE, "portcullis.yaml")?,
            "portcullis.yaml",
            &[
                (SHIPPED_SOCKET, socket.clone()),
                ("127.0.0.1:8080", loopback(ports.envoy)),
                ("127.0.0.1:9100", loopback(ports.identity_provider)),
                ("127.0.0.1:8000", loopback(ports.upstream)),
            ],
        )?;
        self.write_substituted(
            &shipped(EXAMPLE, "records/cases.yaml")?,
            "records/cases.yaml",
            &[("127.0.0.1:8000", loopback(ports.upstream))],
        )?;
        self.write_substituted(
            &shipped("", EDGE)?,
            "envoy.yaml",
            &[
                (SHIPPED_SOCKET, socket),
                ("port_value: 8080", format!("port_value: {}", ports.envoy)),
                ("port_value: 9901", format!("port_value: {}", ports.envoy_admin)),
                ("port_value: 8000", format!("port_value: {}", ports.upstream)),
            ],
        )
    }

    fn write_substituted(&self, from: &Path, to: &str, pairs: &[(&str, String)]) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(from).with_context(|| format!("could not read {}", from.display()))?;
        let text = substitute(&text, pairs).with_context(|| format!("{} is not as expected", from.display()))?;
        let to = self.folder.path.join(to);
        std::fs::write(&to, text).with_context(|| format!("could not write {}", to.display()))
    }
}

/// Put each pair's second in place of its first, in one pass: what was put in is never replaced again.
///
/// # Errors
///
/// When a text that shall be replaced does not occur: the file was changed and would run on an address of its own.
pub(super) fn substitute(text: &str, pairs: &[(&str, String)]) -> anyhow::Result<String> {
    if let Some((missing, _)) = pairs.iter().find(|(from, _)| !text.contains(from)) {
        anyhow::bail!("expected `{missing}` in it, which the demo replaces, found none");
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let next = pairs.iter().filter_map(|(from, to)| Some((rest.find(from)?, *from, to))).min_by_key(|hit| hit.0);
        let Some((at, from, to)) = next else { break };
        let (before, found) = rest.split_at(at);
        result.push_str(before);
        result.push_str(to);
        rest = found.strip_prefix(from).unwrap_or_default();
    }
    result.push_str(rest);
    Ok(result)
}

/// A file that belongs to the repository, which must be the current directory.
fn shipped(folder: &str, name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(folder).join(name);
    anyhow::ensure!(
        path.is_file(),
        "expected the file {} below the current directory, found none; run the demo from the repository's root",
        path.display()
    );
    Ok(path)
}

fn free() -> anyhow::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1")?;
    let port = listener.local_addr().context("a listener without an address")?.port();
    Ok((listener, port))
}

/// A temporary folder that only its owner can read, removed when dropped.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random bytes from the system: {error}"))?;
        let name = format!("portcullis-demo-{:016x}", u64::from_le_bytes(random));
        let path = std::env::temp_dir().join(name);
        // `mkdir` fails when something is there already, a link of someone else's included.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("could not make the folder {}", path.display()))?;
        Ok(Self { path })
    }

    fn socket(&self) -> PathBuf {
        self.path.join("ext_proc.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and what would stay is the demo's own throwaway files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
