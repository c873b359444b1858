#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the workspace compiles with exactly the `rust-version` of Cargo.toml, which no other build looks at.
set -u
cd "$(dirname "$0")/.." || exit 1
version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! command -v rustup >/dev/null ||
    ! rustup toolchain install "$version" --profile minimal --no-self-update; then
    echo "skipped: Rust $version cannot be installed with rustup; the oldest Rust was not tried"
    exit 0
fi
# By name: a toolchain that rust-toolchain.toml or an override chooses would not be this one. In a folder of its own, so
# that neither waits for the other's lock while the tests are built: two compilers share nothing anyway.
exec rustup run "$version" cargo check --workspace --locked --target-dir target/oldest-rust
