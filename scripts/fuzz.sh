#!/usr/bin/env bash
# Fuzzes each target of fuzz/ for this many seconds, as many at once as there are cores: fuzz.sh SECONDS [TARGET…]
# Finds are left in fuzz/artifacts/, inputs that reach something new in target/fuzz/corpus/. The committed corpus is not changed.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.13.2
fail() { printf 'fuzz: %s\n' "$*" >&2; exit 1; }
seconds="${1:-}"
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || fail "expected the seconds for each target, found '$seconds'. Say scripts/fuzz.sh 20."
shift
if [ $# -gt 0 ]; then targets=("$@"); else targets=(exchange door reader sse template record configuration); fi

# CARGO_FUZZ names one that is there already.
fuzz="${CARGO_FUZZ:-.tools/bin/cargo-fuzz}"
if [ -z "${CARGO_FUZZ:-}" ] && [ "$("$fuzz" fuzz --version 2>/dev/null | cut -d' ' -f2)" != "$version" ]; then
  echo "fuzz: installing cargo-fuzz $version into .tools/ (once, about a minute)" >&2
  cargo install cargo-fuzz --version "$version" --locked --force --quiet --root .tools --target-dir target/cargo-fuzz ||
    fail "cargo-fuzz could not be installed; its message stands above. Is crates.io reachable?"
fi

# The flags that libFuzzer needs of the compiler are not stable yet, the compiler is. No sanitizer of memory: nothing of ours
# is unsafe, and without one the targets build and run in half the time.
export RUSTC_BOOTSTRAP=1
"$fuzz" fuzz build --sanitizer none --target-dir target/fuzz >&2 || fail "the targets do not build; the message stands above."
triple="$(rustc -vV | sed -n 's/^host: //p')"

running=()
stop() { if [ ${#running[@]} -gt 0 ]; then kill "${running[@]}" 2>/dev/null || true; fi; }
trap stop EXIT
trap 'exit 130' INT TERM

mkdir -p target/fuzz/logs
run() {
  local target="$1"
  mkdir -p "fuzz/artifacts/$target" "target/fuzz/corpus/$target"
  exec "target/fuzz/$triple/release/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
    -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" "target/fuzz/corpus/$target" "fuzz/corpus/$target" \
    >"target/fuzz/logs/$target" 2>&1
}

at_once="$(nproc)"
failed=0
begin() { run "$1" & running+=($!); names+=("$1"); }
names=()
reap() {
  local pid="${running[0]}" target="${names[0]}"
  if wait "$pid"; then
    printf 'fuzz: %-14s %s executions\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "target/fuzz/logs/$target")"
  else
    failed=1
    printf 'fuzz: %-14s FOUND SOMETHING; again with: target/fuzz/%s/release/%s FILE\n' "$target" "$triple" "$target"
    grep -aE 'panicked at|^SUMMARY|Test unit written' -A2 "target/fuzz/logs/$target" | head -20 || tail -20 "target/fuzz/logs/$target"
  fi
  running=("${running[@]:1}")
  names=("${names[@]:1}")
}
for target in "${targets[@]}"; do
  if [ ${#running[@]} -ge "$at_once" ]; then reap; fi
  begin "$target"
done
while [ ${#running[@]} -gt 0 ]; do reap; done
exit "$failed"
