//! Notices that files may have changed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// How long a change may take to become whole: several files, several writes of one.
const SETTLE: Duration = Duration::from_millis(250);
/// How often it is time to look although nothing was heard.
const POLL: Duration = Duration::from_secs(30);

/// Watches the folders of files: the watch of a file ends with the file, and every swap of a symlink is one.
pub struct Watch {
    /// `None` when the system gives no watches; then there is the poll.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    names: Arc<Mutex<BTreeSet<OsString>>>,
    heard: mpsc::Receiver<()>,
}

impl Watch {
    /// Watches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let (tell, heard) = mpsc::channel(1);
        let names: Arc<Mutex<BTreeSet<OsString>>> = Arc::default();
        let known = Arc::clone(&names);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let names = known.lock().unwrap_or_else(PoisonError::into_inner);
            // What cannot be told may be a change; a full queue has one in it already.
            if event.as_ref().map_or(true, |event| concerns(event, &names)) {
                let _ = tell.try_send(());
            }
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, "files cannot be watched; they are looked at every {POLL:?}");
        }
        Self { watcher: watcher.ok(), folders: BTreeSet::new(), names, heard }
    }

    /// From now on watches these files and no others. Also renews every watch: a folder may be another one by now.
    pub fn follow<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) {
        let (mut folders, mut names) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            let real = std::fs::canonicalize(file).ok();
            for path in [Some(file), real.as_deref()].into_iter().flatten() {
                names.extend(path.file_name().map(OsString::from));
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                folders.insert(folder.unwrap_or(Path::new(".")).to_owned());
            }
        }
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
        let Some(watcher) = &mut self.watcher else { return };
        for folder in &self.folders {
            // A folder that is gone took its watch along.
            let _ = watcher.unwatch(folder);
        }
        for folder in &folders {
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, folder = %folder.display(), "a folder cannot be watched; it is polled");
            }
        }
        self.folders = folders;
    }

    /// Resolves when it is time to look: a moment after something happened, and every half minute. Cancel safe.
    pub async fn look(&mut self) {
        if tokio::time::timeout(POLL, self.heard.recv()).await.is_ok() {
            tokio::time::sleep(SETTLE).await;
            while self.heard.try_recv().is_ok() {}
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether an event may be a change of a file with one of these names: our own reading is none, nor is a log that grows in
/// the same folder. Kubernetes' own names in a volume (`..data`) stand for all of them.
fn concerns(event: &Event, names: &BTreeSet<OsString>) -> bool {
    if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)) {
        return false;
    }
    let ours = |path: &PathBuf| {
        path.file_name().is_none_or(|name| names.contains(name) || name.as_encoded_bytes().starts_with(b".."))
    };
    event.need_rescan() || event.paths.is_empty() || event.paths.iter().any(ours)
}
