#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the crate of `fatpath send` and `fatpath recv`, with all that it needs, lacks libbpf and compiles for systems
# other than Linux, without warnings; with the word "install", fetches Rust for them and the crates that they alone need, as far as those can be had.
#
# Types alone are checked, which needs no library of those systems. So the C that crates bring (cryptography, BLAKE3) is not
# compiled: their build scripts call `true` in the place of a compiler. The C of the laws includes nothing, and is.
set -eu
cd "$(dirname "$0")/.."
TARGETS='x86_64-unknown-freebsd aarch64-apple-darwin'
# What the last fetch said that failed.
FAILED=target/not-fetched-for-other-systems

has_rust_for() {
    rustup target list --installed 2>/dev/null | grep -qx "$1"
}

# The mover's, without asking a network.
has_crates_for() {
    cargo tree --locked --offline --package fatpath-mover --edges normal,build --target "$1" >/dev/null 2>&1
}

is_complete() {
    for target in $TARGETS; do
        has_rust_for "$target" && has_crates_for "$target" || return
    done
}

# Runs a command, which may wait no longer for a network that does not answer. In the background SIGINT is ignored: SIGKILL is not.
in_time() {
    timeout --signal=INT --kill-after=5 45 "$@"
}

fetch() {
    set --
    for target in $TARGETS; do
        has_rust_for "$target" || set -- "$@" "$target"
    done
    [ $# = 0 ] || RUSTUP_MAX_RETRIES=0 in_time rustup target add "$@" || return
    for target in $TARGETS; do
        has_crates_for "$target" || CARGO_NET_RETRY=0 in_time cargo fetch --locked --quiet --target "$target" || return
    done
}

# What failed does not keep everybody waiting again within the hour.
install() {
    if is_complete; then
        rm -f "$FAILED"
        return
    fi
    if [ -z "$(find "$FAILED" -mmin -60 2>/dev/null)" ]; then
        rm -f "$FAILED"
        said=$(fetch 2>&1) && return
        mkdir -p target
        printf '%s\n' "$said" | tail -n 1 >"$FAILED"
    fi
    echo "skipped: setup: not all that the mover is checked with for other systems: $(cat "$FAILED")"
}

check() {
    needs=$(cargo tree --locked --package fatpath-mover --edges normal,build --prefix none)
    case $needs in
    *libbpf*)
        echo 'the mover may not depend on libbpf' >&2
        exit 1
        ;;
    esac
    set --
    for target in $TARGETS; do
        if has_rust_for "$target" && ! has_crates_for "$target"; then
            echo "skipped: no crates for $target (cargo fetch --locked --target $target): the mover was not checked for it"
        elif has_rust_for "$target"; then
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
install) install ;;
*) check ;;
esac
