#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# An RPM of a static binary: rpm.sh BINARY DIRECTORY. Needs rpmbuild. What it does when it is installed and removed is what the
# Debian package does.
set -eu
cd "$(dirname "$0")/.."
binary=$1
directory=$(realpath -m "$2")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
tree=$top/tree
umask 022

DESTDIR=$tree PREFIX=/usr UNITS=/usr/lib/systemd/system packaging/install.sh "$binary"
strip --strip-unneeded "$tree/usr/bin/fatpath"
find "$tree/usr/share/man" -type f -exec gzip -9n {} +
install -D -m 644 -t "$tree/usr/share/licenses/fatpath" LICENSE-*
cat >"$top/fatpath.spec" <<END
Name: fatpath
Version: $version
Release: 1
Summary: Makes TCP fast on long fat paths
License: (MIT OR Apache-2.0) AND (GPL-2.0-only OR BSD-2-Clause) AND LGPL-2.1-or-later AND (GPL-2.0-or-later OR LGPL-3.0-or-later) AND Zlib
%description
A daemon loads eBPF programs that set the socket options of each connection by
the administrator's policy: buffers, congestion control, the initial window.
Programs need no change, the kernel no patch. As installed it learns the paths
of this host and tunes their flows. It is not started: see fatpath(1) and
fatpath-policy(5).
%install
cp -a $tree/. %{buildroot}
%post
[ "\$1" = 1 ] && set -- configure || set -- configure earlier
$(cat packaging/debian/postinst.sh)
%preun
[ "\$1" = 0 ] || exit 0
set -- remove
$(cat packaging/debian/prerm.sh)
%postun
set -- remove
$(cat packaging/debian/postrm.sh)
%files
$(cd "$tree" && find . -type d -path '*/fatpath*' -printf '%%dir /%P\n')
$(cd "$tree" && find . -type f ! -path './etc/*' -printf '/%P\n')
$(packaging/install.sh --configuration | sed 's/^/%config(noreplace) /')
END
mkdir -p "$directory"
rpmbuild -bb --quiet --define "_topdir $top/rpm" --define "_rpmdir $directory" --define '_build_id_links none' \
    --define '__os_install_post %{nil}' --define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' "$top/fatpath.spec"
