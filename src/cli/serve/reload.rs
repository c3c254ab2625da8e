//! Takes a changed configuration, whole or not at all.
//!
//! What cannot change while the process runs is where it listens: a new file may lean on its new listener (a credential,
//! which a listener without TLS would show to anyone), so a reload that changes it is refused whole. What is merely sized at
//! the start, and the content of the listener's certificates, stays as it was, the rest is taken, and the log and `/status` say
//! that a restart is due.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;

use portcullis::config::reload::{Board, Contents, Watch};
use portcullis::config::{self, AdminListener, Drain, Kept, Loaded, Serving};
use portcullis::extproc::listen::{Address, Tls};
use portcullis::extproc::service::Service;
use portcullis::identity::KeyStores;
use portcullis::ladder::Snapshot;
use portcullis::telemetry::counters::Counters;
use portcullis::telemetry::log;
use portcullis::telemetry::settings::Settings;

/// How often a configuration that changes while it is read is read again, before the next look.
const ATTEMPTS: usize = 5;

/// What the process was started with and keeps.
pub(super) struct Started {
    address: Address,
    tls: Option<Tls>,
    admin: Option<AdminListener>,
    worker_threads: usize,
    telemetry: Settings,
    largest_request: usize,
}

impl Started {
    pub(super) fn of(serving: &Serving) -> Self {
        Self {
            address: serving.address.clone(),
            tls: serving.tls.clone(),
            admin: serving.admin.clone(),
            worker_threads: serving.worker_threads,
            telemetry: Settings { log: None, ..serving.telemetry.clone() },
            largest_request: largest_request(serving),
        }
    }

    /// The largest body cap of any server, in bytes: what the listener must be able to decode.
    pub(super) fn largest_request(&self) -> usize {
        self.largest_request
    }

    /// Why a configuration cannot be taken without a restart.
    fn refuses(&self, serving: &Serving) -> Vec<String> {
        let mut faults = Vec::new();
        if serving.address != self.address {
            faults.push(format!(
                "listen.ext_proc: expected the address that this process listens on, {}, found {}; restart to listen there",
                self.address, serving.address
            ));
        }
        if serving.tls.is_some() != self.tls.is_some() {
            faults.push(
                "listen.ext_proc.tls: expected it as at the start; restart to change whether TLS is spoken".into(),
            );
        }
        if serving.admin != self.admin {
            faults.push("listen.admin: expected it as at the start, found another; restart to change it".into());
        }
        let largest = largest_request(serving);
        if largest > self.largest_request {
            faults.push(format!(
                "limits.request: expected at most {} bytes, the most of any server at the start, found {largest}; restart to \
                 raise it",
                self.largest_request
            ));
        }
        faults
    }

    /// What is taken only by a restart.
    fn keeps(&self, serving: &Serving) -> Vec<String> {
        let telemetry = Settings { log: None, ..serving.telemetry.clone() };
        let kept = [
            (serving.tls != self.tls, "listen.ext_proc.tls: the content of its files"),
            (serving.worker_threads != self.worker_threads, "worker_threads"),
            (telemetry != self.telemetry, "telemetry (all but log)"),
        ];
        kept.iter().filter(|(differs, _)| *differs).map(|(_, what)| (*what).to_owned()).collect()
    }
}

fn largest_request(serving: &Serving) -> usize {
    serving.snapshot.servers().iter().map(|server| server.limits.request).max().unwrap_or(0)
}

/// Reloads while the process runs.
pub(super) struct Reloader {
    pub(super) config: PathBuf,
    pub(super) keys: Arc<KeyStores>,
    pub(super) service: Service,
    pub(super) logging: log::Handle,
    pub(super) counters: Arc<Counters>,
    pub(super) board: Arc<Board>,
    pub(super) drain: Arc<Mutex<Drain>>,
    pub(super) started: Started,
    pub(super) kept: Kept,
}

impl Reloader {
    /// Looks whenever something may have changed, and on each SIGHUP. `contents` is what was loaded; `asked`: load it again.
    pub(super) async fn run(mut self, mut contents: Contents, mut asked: bool, mut hangups: Signal) {
        let mut watch = Watch::new();
        loop {
            watch.follow(contents.files());
            // Whatever changed before the watches stood was heard by none, so one look follows them.
            let seen = self.look(contents.clone(), asked).await;
            asked = false;
            if seen != contents {
                contents = seen;
                continue;
            }
            asked = tokio::select! {
                () = watch.look() => false,
                asked = hangups.recv() => asked.is_some(),
            };
        }
    }

    /// Loads what is there, when it is other than what was last loaded or tried, or when asked to.
    async fn look(&mut self, tried: Contents, asked: bool) -> Contents {
        for attempt in 0..ATTEMPTS {
            let known = tried.clone();
            let Some(present) = apart(move || Contents::read(known.files())).await else { return tried };
            if present.agrees(&tried) && !(asked && attempt == 0) {
                return tried;
            }
            let (config, keys, kept) = (self.config.clone(), Arc::clone(&self.keys), self.kept.clone());
            let loading = move || {
                let loaded = config::load_after(&config, &keys, &kept);
                let files: Vec<PathBuf> =
                    loaded.files.iter().cloned().chain(present.files().map(PathBuf::from)).collect();
                let after = Contents::read(files.iter().map(PathBuf::as_path));
                // A file that changed meanwhile would make a mixture of two configurations.
                let settled = after.agrees(&present);
                (loaded, after, settled)
            };
            let Some((loaded, after, settled)) = apart(loading).await else {
                self.board.refused(vec!["loading the configuration panicked; see the log".to_owned()]);
                return tried;
            };
            if settled {
                self.take(loaded, &after).await;
                return after;
            }
        }
        tracing::warn!("the configuration's files change all the while; they are looked at again");
        tried
    }

    /// Puts what was loaded into force, or tells why not.
    async fn take(&mut self, loaded: Loaded, contents: &Contents) {
        let Loaded { serving, faults, warnings, .. } = loaded;
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let faults = serving.as_ref().map_or(faults, |serving| self.started.refuses(serving));
        let Some(serving) = serving.filter(|_| faults.is_empty()) else {
            for fault in &faults {
                tracing::error!(fault, "the changed configuration is not taken");
            }
            let generation = self.service.generation();
            tracing::error!(generation, faults = faults.len(), "what was in force stays in force");
            return self.board.refused(faults);
        };
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        let needs_restart = self.started.keeps(&serving);
        for what in &needs_restart {
            tracing::warn!("{what} was changed, which takes a restart; the rest is in force");
        }
        let Serving { snapshot, kept, max_streams, drain, telemetry, .. } = serving;
        if let Err(fault) = self.logging.configure(telemetry.log.as_deref()) {
            tracing::error!(fault, "telemetry.log: logging stays as it was");
        }
        let before = self.service.snapshot();
        // The answers that are held already go on counting.
        before.held_answers().set_most(snapshot.held_answers().most());
        let snapshot = Arc::new(snapshot.with_held_answers(Arc::clone(before.held_answers())));
        self.counters.follow(&snapshot.known());
        self.kept = kept;
        *self.drain.lock().unwrap_or_else(PoisonError::into_inner) = drain;
        succeed(&snapshot, &before);
        self.service.replace(Arc::clone(&snapshot), max_streams);
        follow(&snapshot, Some(&before));
        let (generation, digest) = (self.service.generation(), contents.digest());
        tracing::info!(generation, digest, "a changed configuration is in force");
        self.board.loaded(generation, digest, needs_restart);
        // Its tables may be large; freeing them is nobody's wait.
        apart(move || drop(before)).await;
    }
}

/// What work gives that may block; `None` when it panicked or no thread could be had. On a thread of its own, which ends with
/// it: one that lingers keeps what it worked with (measured: 15 MiB after a few reloads).
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, heard) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        let _context = runtime.enter();
        drop(tell.send(work()));
    };
    std::thread::Builder::new().name("reload".to_owned()).spawn(work).ok()?;
    heard.await.ok()
}

/// What a server said while the new snapshot was loaded counts in it.
fn succeed(snapshot: &Snapshot, before: &Snapshot) {
    for server in snapshot.servers() {
        let old = before.servers().iter().find(|old| old.name == server.name).and_then(|old| old.freshness.as_ref());
        if let (Some(own), Some(old)) = (&server.freshness, old)
            && !Arc::ptr_eq(own, old)
        {
            own.succeed(old);
        }
    }
}

/// Starts what goes on beside the calls for as long as a snapshot's parts live: secrets' files are followed, the issuers' keys
/// fetched once, servers listed ahead of time while there is traffic. A part that `before` had already is served.
pub(super) fn follow(snapshot: &Snapshot, before: Option<&Snapshot>) {
    let old = || before.into_iter().flat_map(Snapshot::servers);
    for server in snapshot.servers() {
        let credential = server.credential.watch().map(tokio::spawn);
        let secret = server.authenticator.watch().map(tokio::spawn);
        let keys = server.authenticator.fetch_keys().map(tokio::spawn);
        // Each ends by itself with what it serves.
        drop((credential, secret, keys));
        if !old().any(|old| Arc::ptr_eq(&old.gates, &server.gates)) {
            server.gates.watch().for_each(|following| drop(tokio::spawn(following)));
        }
        let Some(freshness) = &server.freshness else { continue };
        if !old().any(|old| old.freshness.as_ref().is_some_and(|old| Arc::ptr_eq(old, freshness))) {
            tokio::spawn(freshness.keep());
            drop(freshness.watch().map(tokio::spawn));
        }
    }
}
