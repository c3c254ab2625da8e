//! What happens to the disk that the audit is written to.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::account::Losses;
use super::{Fault, Metric, World};
use crate::support::portcullis::Setting;
use crate::support::wait_for;

const REFUSED: Metric = Metric::Portcullis("portcullis_streams_refused_total", &[]);
const DROPPED: Metric = Metric::Portcullis("portcullis_audit_dropped_total", &["at=\"file\""]);
/// What is left of a full disk: a hundred records or so, so that it is the audit that finds it full.
const LEFT: u64 = 64 * 1024;
/// Mounts a file system of 16 MiB on its first argument, and becomes the rest of them in it.
const MOUNTED: &str = "mount -t tmpfs -o size=16m,mode=700 none \"$0\" && exec setpriv --pdeathsig KILL \"$@\"";

fn world(setting: Setting, file: &Path, when_full: &str) -> World {
    let audit = format!("audit: {{stdout: json, file: {}, when_full: {when_full}}}", file.display());
    World::made(setting, |config, _| config.replace("audit: {stdout: json}", &audit), |edge, _| edge)
}

/// The audit's file, which comes to stand on a disk that was always full.
fn never_writable(name: &'static str, when_full: &str, metric: Metric) -> Fault {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("audit.jsonl");
    let world = world(Setting::default(), &file, when_full);
    let of_lift = file.clone();
    let inject = move |_: &mut World| {
        let beside = dir.path().join("audit.next");
        symlink("/dev/full", &beside).expect("a link");
        fs::rename(beside, &file).expect("renamed");
    };
    Fault::new(name, metric, world, inject, move |_| super::inside::replace(&of_lift, ""))
}

pub(crate) fn device_refuse() -> Fault {
    never_writable("/dev/full, when_full: refuse", "refuse", REFUSED)
        .losing(Losses { crowded: true, ..Losses::default() })
}

pub(crate) fn device_drop() -> Fault {
    never_writable("/dev/full, when_full: drop", "drop", DROPPED).harmless()
}

/// The file system of the audit's file, which the audit fills up; then there is room again.
fn fills_up(name: &'static str, when_full: &'static str, metric: Metric) -> Fault {
    let disk = Disk::new();
    let world = world(disk.setting(), &disk.audit(), when_full);
    let (of_inject, mut round) = (disk.path(), 0);
    let inject = move |world: &mut World| fill(&seen_from_here(world, &of_inject));
    let lift = move |world: &mut World| {
        round += 1;
        let place = seen_from_here(world, &disk.path());
        let file = place.join("audit.jsonl");
        let before = fs::metadata(&file).expect("the audit's file").len();
        fs::remove_file(place.join("filler")).expect("room again");
        let grows = || fs::metadata(&file).is_ok_and(|now| now.len() > before).then_some(());
        assert!(wait_for(Duration::from_secs(20), grows).is_some(), "expected records in the file once there is room");
        // What is kept for another try goes on where it stopped; what is dropped may leave the half of a line, one each time.
        let torn = torn_lines(&file);
        assert!(torn <= if when_full == "drop" { round } else { 0 }, "{torn} torn lines after {round} rounds");
    };
    Fault::new(name, metric, world, inject, lift)
}

pub(crate) fn full_refuse() -> Fault {
    fills_up("disk fills up, when_full: refuse", "refuse", REFUSED)
        .losing(Losses { crowded: true, ..Losses::default() })
}

pub(crate) fn full_drop() -> Fault {
    fills_up("disk fills up, when_full: drop", "drop", DROPPED).harmless()
}

/// Writes all of the file system but for [`LEFT`] bytes.
fn fill(place: &Path) {
    let mut filler = OpenOptions::new().create(true).append(true).open(place.join("filler")).expect("a file");
    while filler.write_all(&[0; 4096]).is_ok() {}
    let length = filler.metadata().expect("its length").len();
    filler.set_len(length - LEFT).expect("some room");
}

/// The lines of a file that are no JSON; the last may be on its way.
fn torn_lines(file: &Path) -> usize {
    let text = fs::read_to_string(file).expect("the audit's file");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count()
}

/// A path of Portcullis's own mount namespace.
fn seen_from_here(world: &World, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", world.stack.portcullis.id()));
    root.join(path.strip_prefix("/").expect("a path from the root"))
}

/// A small file system that only the Portcullis started on it has, and that ends with it.
struct Disk {
    point: TempDir,
    /// How a mount namespace may be had here.
    unshare: &'static str,
}

impl Disk {
    fn new() -> Self {
        let point = tempfile::tempdir().expect("a temporary directory");
        // With privileges a namespace of mounts will do; without them it takes one of users, in which we have them.
        let mut said = Vec::new();
        for unshare in ["-m", "-rm"] {
            let words = ["sh", "-c", MOUNTED, &point.path().display().to_string(), "true"];
            let fault = match Command::new("unshare").arg(unshare).args(words).output() {
                Ok(output) if output.status.success() => return Self { point, unshare },
                Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                Err(fault) => fault.to_string(),
            };
            said.push(format!("unshare {unshare}: {fault}"));
        }
        panic!(
            "expected to mount a tmpfs in a mount namespace, which takes root, or user namespaces for everybody, got\n{}\n\
             run this as root, or allow them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, \
             kernel.apparmor_restrict_unprivileged_userns=0); util-linux has unshare, mount and setpriv",
            said.join("\n")
        );
    }

    fn path(&self) -> PathBuf {
        self.point.path().to_owned()
    }

    fn audit(&self) -> PathBuf {
        self.point.path().join("audit.jsonl")
    }

    fn setting(&self) -> Setting {
        let words = ["unshare", self.unshare, "sh", "-c", MOUNTED, &self.point.path().display().to_string()];
        Setting { wrapper: words.map(str::to_owned).to_vec(), ..Setting::default() }
    }
}
