//! A place where audit lines are written: standard output, or a file that may be rotated by its name.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::telemetry::counters::Lost;

/// How often it is looked whether the file still has its name.
const LOOK: Duration = Duration::from_secs(1);

/// A place for lines.
pub struct Sink {
    place: Place,
    /// Whether a line was cut off, so that the next must not go on in it.
    torn: bool,
    /// Whether its fault was told, and has not gone since.
    told: bool,
}

enum Place {
    Stream(Box<dyn Write + Send>),
    File { path: PathBuf, file: Option<File>, looked: Instant },
}

impl Sink {
    /// A stream, standard output say.
    #[must_use]
    pub fn stream(stream: Box<dyn Write + Send>) -> Self {
        Self { place: Place::Stream(stream), torn: false, told: false }
    }

    /// A file, made if it is not there, with mode 0600. Lines are appended. When the name comes to stand for another file
    /// (log rotation), or for none, the next lines go to a new one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn file(path: &Path) -> io::Result<Self> {
        let file = Some(open(path)?);
        let place = Place::File { path: path.to_owned(), file, looked: Instant::now() };
        Ok(Self { place, torn: false, told: false })
    }

    pub(super) fn lost(&self) -> Lost {
        match self.place {
            Place::Stream(_) => Lost::Stdout,
            Place::File { .. } => Lost::File,
        }
    }

    /// Writes all of `left`, and takes off it what was written, so that another try goes on behind that.
    pub(super) fn write(&mut self, left: &mut &[u8]) -> io::Result<()> {
        let out: &mut dyn Write = match &mut self.place {
            Place::Stream(stream) => stream,
            Place::File { path, file, looked } => current(path, file, looked)?,
        };
        if self.torn {
            // In a file that is read line by line the half of a line is one that does not parse, and the only one.
            out.write_all(b"\n")?;
            self.torn = false;
        }
        while !left.is_empty() {
            match out.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => *left = left.get(written..).unwrap_or_default(),
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        }
        out.flush()?;
        if std::mem::take(&mut self.told) {
            tracing::info!(sink = self.lost().as_str(), "audit events are written again");
        }
        Ok(())
    }

    /// Logs a fault, once until it has gone. `kept` tells whether the lines are kept for another try.
    pub(super) fn complain(&mut self, fault: &io::Error, kept: bool) {
        // What is given up may have been written half.
        self.torn |= !kept;
        if !std::mem::replace(&mut self.told, true) {
            let becomes = if kept { "new calls are refused until they are" } else { "they are dropped and counted" };
            tracing::error!(sink = self.lost().as_str(), %fault, "audit events cannot be written; {becomes}");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// The file that has the name now.
fn current<'a>(path: &Path, file: &'a mut Option<File>, looked: &mut Instant) -> io::Result<&'a mut File> {
    if looked.elapsed() >= LOOK {
        *looked = Instant::now();
        let of = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(path).map(of).ok();
        if named.is_none() || file.as_ref().and_then(|file| file.metadata().map(of).ok()) != named {
            *file = None;
        }
    }
    match file {
        Some(file) => Ok(file),
        none => Ok(none.insert(open(path)?)),
    }
}
