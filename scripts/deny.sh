#!/usr/bin/env bash
# cargo-deny: bans, licences and sources always; advisories when their database can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
deny=.tools/bin/cargo-deny
[ -x "$deny" ] || { echo "deny: expected $deny, found none. Run \`make tools\`." >&2; exit 1; }

"$deny" --log-level error check bans licenses sources

# Asked first and apart, so that an unreachable database is told from an advisory that was found.
database=https://github.com/rustsec/advisory-db
if GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote --exit-code "$database" HEAD >/dev/null 2>&1; then
  "$deny" --log-level error check advisories
else
  echo "*** deny: ADVISORIES WERE NOT CHECKED: $database cannot be reached from here. ***" >&2
fi
