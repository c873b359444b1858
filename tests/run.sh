#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every test, or with "long" those that `make test` leaves out because they last; the last line
# counts what passed, failed and was skipped.
# A test that cannot run prints a line that begins with "skipped:".
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p out
# What a killed run of the benchmarks left loaded would keep the laws' names. One that lives has the lock: the
# tests wait for it.
if [ -d /sys/fs/bpf/fatpath-bench ]; then
  flock --nonblock --conflict-exit-code 0 "${TMPDIR:-/tmp}/fatpath-tests.lock" \
    cargo run --quiet --locked --package fatpath-cli -- unload \
    --pin-dir /sys/fs/bpf/fatpath-bench --run-dir /run/fatpath-bench || exit 1
fi
if [ "${1:-}" = long ]; then log=out/test-long.log which=--ignored; else log=out/test.log which=; fi
# shellcheck disable=SC2086 # no word if empty
cargo test --workspace --locked --no-fail-fast -- --show-output $which >"$log" 2>&1
status=$?
# What was run and what was skipped; then what cargo, a compiler or a test that failed said.
grep -E '^(test |test result:|skipped:)' "$log"
if [ "$status" != 0 ]; then
  grep -E -A 20 '^error' "$log"
  sed -n '/^failures:$/,/^test result:/p' "$log"
fi
passed=$(grep '^test result:' "$log" | grep -oE '[0-9]+ passed' | awk '{n += $1} END {print n + 0}')
failed=$(grep '^test result:' "$log" | grep -oE '[0-9]+ failed' | awk '{n += $1} END {print n + 0}')
left=$(grep -c '^test .* ignored, long$' "$log")
[ "$left" = 0 ] || echo "$left long tests are left to make test-long"
skipped=$(grep -c '^skipped:' "$log")
echo "$((passed - skipped)) passed, $failed failed, $skipped skipped"
exit "$status"
