#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A Debian package of a binary: deb.sh BINARY DIRECTORY. Prints the package's name.
# FATPATH_DEB_VERSION is the version, by default that of Cargo.toml with the revision 1. For another processor: ARCH is
# Debian's name of it, TOOLS the prefix of its binutils, NATIVE as for install.sh.
set -eu
cd "$(dirname "$0")/.."
binary=$1 directory=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
version=${FATPATH_DEB_VERSION:-$version-1}
arch=${ARCH:-$(dpkg --print-architecture)}
tools=${TOOLS:-}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
umask 022

DESTDIR=$root PREFIX=/usr UNITS=/usr/lib/systemd/system ZSH=/usr/share/zsh/vendor-completions \
    packaging/install.sh "$binary"
"${tools}strip" --strip-unneeded "$root/usr/bin/fatpath"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
gzip -9n "$root/usr/share/doc/fatpath/CHANGELOG.md"
mv "$root/usr/share/doc/fatpath/CHANGELOG.md.gz" "$root/usr/share/doc/fatpath/changelog.gz"
install -m 644 packaging/debian/copyright "$root/usr/share/doc/fatpath/copyright"

mkdir "$root/DEBIAN"
packaging/install.sh --configuration >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 755 "packaging/debian/$script.sh" "$root/DEBIAN/$script"
done
glibc=$("${tools}objdump" -T "$root/usr/bin/fatpath" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n1)
cat >"$root/DEBIAN/control" <<END
Package: fatpath
Version: $version
Architecture: $arch
Maintainer: fatpath developers <fatpath@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1, libelf1 | libelf1t64, zlib1g, passwd
Suggests: iperf3, iputils-ping, traceroute
Section: net
Priority: optional
Description: makes TCP fast on long fat paths
 A daemon loads eBPF programs that set the socket options of each connection by
 the administrator's policy: buffers, congestion control, the initial window.
 Programs need no change, the kernel no patch. As installed it learns the paths
 of this host and tunes their flows. It is not started: see fatpath(1) and
 fatpath-policy(5).
END
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
mkdir -p "$directory"
package=$directory/fatpath_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
