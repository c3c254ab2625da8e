//! Secrets: named in the configuration, read from a file or an environment variable, never written anywhere.
//!
//! A file is read again when it changes (Kubernetes rotates a mounted secret by swapping a symlink, so neither its
//! directory entry nor its time alone says that it changed). Readers on the request path take the current value with
//! one atomic load and never wait for the file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use schemars::JsonSchema;
use serde::Deserialize;

/// How often a secret's file is looked at.
const POLL: Duration = Duration::from_secs(2);
/// Longer values are not credentials but a wrong file.
const MAX_BYTES: usize = 16 * 1024;
const MAX_FILE_BYTES: u64 = 16 * 1024 + 2;

/// Where a secret comes from: exactly one of `file` and `env`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct SecretSource {
    /// File that holds the secret and nothing else (one trailing newline is dropped); read again when it changes.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Environment variable that holds the secret; read once at load.
    #[serde(default)]
    pub env: Option<String>,
}

/// Why a secret cannot be used. The texts name the source, never the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// Neither or both of `file` and `env`.
    #[error(
        "expected exactly one of `file` and `env`; name the file or the environment variable that holds the secret"
    )]
    Source,
    /// The file cannot be read.
    #[error("cannot read the secret's file {path}: {reason}; check that it exists and that this process may read it")]
    Unreadable {
        /// The file as it was opened.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
    /// The environment variable is not set (or not Unicode).
    #[error("the environment variable {0} is not set; set it to the secret before starting")]
    Unset(String),
    /// The value is unusable in an HTTP header.
    #[error(
        "the secret in {origin} {problem}; expected 1 to 16384 visible ASCII characters without spaces at the ends"
    )]
    Unusable {
        /// The file or the variable.
        origin: String,
        /// What is wrong, without the value.
        problem: &'static str,
    },
}

/// One secret and its present value. Clones share the value.
#[derive(Clone)]
pub struct Secret {
    inner: Arc<Inner>,
}

struct Inner {
    file: Option<PathBuf>,
    value: ArcSwap<Arc<str>>,
}

impl SecretSource {
    /// Reads the secret. A relative `file` is taken from `base`, the folder of the configuration file.
    ///
    /// # Errors
    /// [`SecretFault`]: no usable value is there now.
    pub fn read(&self, base: &Path) -> Result<Secret, SecretFault> {
        match (&self.file, &self.env) {
            (Some(file), None) => {
                let path = base.join(file);
                let value = read_file(&path)?;
                Ok(Secret::new(Some(path), value))
            }
            (None, Some(name)) => {
                let text = std::env::var(name).map_err(|_| SecretFault::Unset(name.clone()))?;
                let text = usable(&text, || format!("the environment variable {name}"))?;
                Ok(Secret::new(None, text))
            }
            _ => Err(SecretFault::Source),
        }
    }
}

impl Secret {
    fn new(file: Option<PathBuf>, value: Arc<str>) -> Self {
        Self { inner: Arc::new(Inner { file, value: ArcSwap::from_pointee(value) }) }
    }

    /// The present value. One atomic load and a reference count.
    #[must_use]
    pub fn current(&self) -> Arc<str> {
        Arc::clone(&self.inner.value.load())
    }

    /// Whether the value can change while the process runs.
    #[must_use]
    pub fn is_watchable(&self) -> bool {
        self.inner.file.is_some()
    }

    /// Looks at the file once and takes its new value, if it has one; `true` when the value changed.
    ///
    /// The content is read each time (it is small): a file that is rewritten within the resolution of its time stamp,
    /// with a value of the same length, has changed all the same.
    ///
    /// # Errors
    /// [`SecretFault`]: the old value stays in use.
    pub fn refresh(&self) -> Result<bool, SecretFault> {
        let Some(path) = &self.inner.file else { return Ok(false) };
        let fresh = read_file(path)?;
        let changed = fresh != **self.inner.value.load();
        if changed {
            self.inner.value.store(Arc::new(fresh));
        }
        Ok(changed)
    }

    /// Follows the file: calls `tick` after each look, with the secret. Ends when `tick` returns `false`.
    ///
    /// A file that is gone or unusable for a while keeps the last good value: a rotation that is caught half-way must
    /// not stop traffic. The fault is logged once until it is over.
    pub async fn watch(self, mut tick: impl FnMut(&Self) -> bool) {
        let mut failing = false;
        loop {
            tokio::time::sleep(POLL).await;
            let secret = self.clone();
            // Files of a mounted volume can hang; they must not hold a worker.
            let looked = tokio::task::spawn_blocking(move || secret.refresh()).await;
            match looked {
                Ok(Ok(changed)) => {
                    if changed {
                        tracing::info!(file = ?self.inner.file, "secret changed");
                    }
                    failing = false;
                }
                Ok(Err(fault)) if !failing => {
                    tracing::warn!(%fault, "secret cannot be read again; the last good value stays in use");
                    failing = true;
                }
                _ => {}
            }
            if !tick(&self) {
                return;
            }
        }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("file", &self.inner.file).finish_non_exhaustive()
    }
}

fn read_file(path: &Path) -> Result<Arc<str>, SecretFault> {
    let unreadable = |error: std::io::Error| SecretFault::Unreadable { path: path.into(), reason: error.to_string() };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    let origin = || path.display().to_string();
    // Room for the newline; a file that grows meanwhile is caught below.
    if about.len() > MAX_FILE_BYTES {
        return Err(SecretFault::Unusable { origin: origin(), problem: "is too long" });
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(SecretFault::Unusable { origin: origin(), problem: "is not ASCII text" });
    };
    usable(&text, origin)
}

/// Drops one trailing newline and checks that the rest can stand in a header value without changing its meaning.
fn usable(text: &str, origin: impl Fn() -> String) -> Result<Arc<str>, SecretFault> {
    let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
    let problem = if text.is_empty() {
        "is empty"
    } else if text.len() > MAX_BYTES {
        "is too long"
    } else if text.starts_with(' ') || text.ends_with(' ') {
        "starts or ends with a space"
    } else if !text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        "holds a control or non-ASCII character"
    } else {
        return Ok(Arc::from(text));
    };
    Err(SecretFault::Unusable { origin: origin(), problem })
}
