//! Instructions instead of time: the same on a busy machine as on an idle one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the profile of an arm goes, for `callgrind_annotate`.
fn profile(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.{}", name.replace([' ', ','], "-")))
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
    let text = fs::read_to_string(&file)
        .unwrap_or_else(|fault| panic!("expected callgrind to write {}, got {fault}", file.display()));
    let totals = text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    eprintln!("{name}: callgrind_annotate {}", file.display());
    totals.unwrap_or_else(|| panic!("expected a line `totals:` in {}", file.display()))
}

fn control(option: &str, pid: u32) {
    let status = Command::new("callgrind_control").arg(option).arg(pid.to_string()).stdout(Stdio::null()).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "expected valgrind's callgrind_control to reach process {pid}"
    );
}
