#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the crate of `fatpath send` and `fatpath recv`, with all that it needs, lacks libbpf and compiles for systems
# other than Linux, without warnings; with the word "install", fetches Rust for them, as far as that can be had.
#
# Types alone are checked, which needs no library of those systems. So the C that crates bring (cryptography, BLAKE3) is not
# compiled: their build scripts call `true` in the place of a compiler. The C of the laws includes nothing, and is.
set -eu
cd "$(dirname "$0")/.."
TARGETS='x86_64-unknown-freebsd aarch64-apple-darwin'

has_rust_for() {
    rustup target list --installed 2>/dev/null | grep -qx "$1"
}

install() {
    has_rust_for "$1" || timeout 120 rustup target add "$1" >/dev/null 2>&1 ||
        echo "skipped: setup: no Rust for $1; the mover is not checked for it"
}

check() {
    if cargo tree --locked --package fatpath-mover --edges normal --prefix none | grep libbpf; then
        echo 'the mover may not depend on libbpf' >&2
        exit 1
    fi
    set --
    for target in $TARGETS; do
        if has_rust_for "$target"; then
            set -- "$@" --target "$target"
            clang --target="$target" -ffreestanding -fsyntax-only -Wall -Werror -Ibpf/cc crates/cc/src/host.c
            variable=$(echo "$target" | tr - _)
            export "CC_$variable=true" "AR_$variable=true"
        else
            echo "skipped: no Rust for $target (rustup target add $target): the mover was not checked for it"
        fi
    done
    [ $# -gt 0 ] || return 0
    # Else xcrun would be asked for Apple's.
    SDKROOT=/ cargo clippy --locked --package fatpath-mover "$@" -- -D warnings
}

case "${1:-}" in
install) for target in $TARGETS; do install "$target"; done ;;
*) check ;;
esac
