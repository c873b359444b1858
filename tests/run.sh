#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every test, or with "long" those that `make test` leaves out because they last, or with "kernels" every test and
# the kernel matrix. A line counts what passed, failed and was skipped.
# A test that cannot run prints a line that begins with "skipped:".
set -u
cd "$(dirname "$0")/.." || exit 1
# systemd mounts it; where it did not, tests that load programs without a daemon would depend on who ran before.
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf || exit 1
# What a killed test or benchmark left loaded would keep the laws' names. One that lives has the lock: the tests wait
# for it.
find /sys/fs/bpf -path '/sys/fs/bpf/fatpath-*/law_*' -printf '%h\n' | sort -u | while read -r pins; do
  flock --nonblock --conflict-exit-code 0 "${TMPDIR:-/tmp}/fatpath-tests.lock" \
    cargo run --quiet --locked --package fatpath-cli -- unload \
    --pin-dir "$pins" --run-dir "/run/${pins##*/}" </dev/null || exit 1
done || exit 1
exec cargo xtask test "$@"
