#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A tarball of a static program, with what install.sh installs: tarball.sh BINARY DIRECTORY. Prints the tarball's name.
# Whoever unpacks it runs `packaging/install.sh ./fatpath` in its folder.
set -eu
cd "$(dirname "$0")/.."
binary=$1 directory=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=fatpath-$version-$(uname -m)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022

mkdir "$root/$name"
cp -r --parents README.md CHANGELOG.md LICENSE-* include docs experiments examples packaging/install.sh packaging/*.toml \
    packaging/*.service packaging/*.sysusers packaging/grafana "$root/$name"
find "$root/$name" -name __pycache__ -exec rm -r {} +
install -m 755 -s "$binary" "$root/$name/fatpath"
mkdir -p "$directory"
tar --create --gzip --owner root:0 --group root:0 --directory "$root" --file "$directory/$name.tar.gz" "$name"
echo "$directory/$name.tar.gz"
