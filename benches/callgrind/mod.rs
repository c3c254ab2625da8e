//! Instructions instead of time: the same on a busy machine as on an idle one. Counted by valgrind's callgrind.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the profile of `name` goes, for `callgrind_annotate`.
fn profile(name: &str) -> PathBuf {
    let plain = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.{plain}"))
}

/// A command that runs `program` under callgrind.
pub(crate) fn command(name: &str, program: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", profile(name).display())).arg(program);
    command
}

/// Forgets what was counted so far.
pub(crate) fn zero(pid: u32) {
    control("-z", pid);
}

/// What was counted since; the profile stays in its file.
pub(crate) fn dump(name: &str, pid: u32) -> u64 {
    control("-d", pid);
    let file = profile(name).with_extension(format!("{}.1", profile(name).extension().unwrap_or_default().display()));
    eprintln!("{name}: callgrind_annotate {}", file.display());
    total(&file)
}

/// What [`collected`] costs in this program, started with `arguments`; the profile stays in its file.
pub(crate) fn count(name: &str, arguments: &[&str]) -> u64 {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*callgrind*collected*"])
        .arg(format!("--callgrind-out-file={}", profile(name).display()))
        .arg(program)
        .args(arguments)
        .stdout(Stdio::null());
    let ended = command.stderr(Stdio::piped()).output();
    let ended = ended.unwrap_or_else(|fault| panic!("expected valgrind, got {fault}; install it"));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "expected valgrind to run {arguments:?}, got {}:\n{said}", ended.status);
    let counted = total(&profile(name));
    assert!(counted > 0, "expected instructions in `collected` of {arguments:?}, found none: was it inlined?");
    counted
}

/// Runs `work`, which is all that [`count`] counts.
#[inline(never)]
pub(crate) fn collected<T>(work: impl FnOnce() -> T) -> T {
    std::hint::black_box(work())
}

fn total(file: &Path) -> u64 {
    let text = fs::read_to_string(file)
        .unwrap_or_else(|fault| panic!("expected callgrind to write {}, got {fault}", file.display()));
    let totals = text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    totals.unwrap_or_else(|| panic!("expected a line `totals:` in {}", file.display()))
}

fn control(option: &str, pid: u32) {
    let status = Command::new("callgrind_control").arg(option).arg(pid.to_string()).stdout(Stdio::null()).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "expected valgrind's callgrind_control to reach process {pid}"
    );
}
