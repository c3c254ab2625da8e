//! What stands in the files that make a configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of each file; `None` of one that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents(BTreeMap<PathBuf, Option<[u8; 32]>>);

impl Contents {
    /// Reads these files, whole and now. Blocks.
    #[must_use]
    pub fn read<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        let content = |file: &Path| std::fs::read(file).ok().map(|bytes| Sha256::digest(bytes).into());
        Self(files.into_iter().map(|file| (file.to_owned(), content(file))).collect())
    }

    /// Whether no file that both have looked at differs.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        self.0.iter().all(|(file, content)| other.0.get(file).is_none_or(|known| known == content))
    }

    /// Whether any of the files, or the folder in which it stands (a symlink may have been swapped), was written at `since` or
    /// later, as far as their times tell. Blocks.
    ///
    /// What was loaded since then may be older than what is here.
    #[must_use]
    pub fn written_since(&self, since: SystemTime) -> bool {
        let late = |path: &Path| {
            let written = std::fs::metadata(path).and_then(|data| data.modified());
            written.is_ok_and(|written| written >= since)
        };
        self.0.keys().any(|file| late(file) || file.parent().is_some_and(late))
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// One digest of all of it, `sha256:` and hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (file, content) in &self.0 {
            hash.update(Sha256::digest(file.as_os_str().as_encoded_bytes()));
            hash.update(content.unwrap_or_default());
        }
        let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }
}
