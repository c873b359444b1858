#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tarball in a system that has busybox and nothing else, no library either: tarball.sh TARBALL.
# Installs, installs again over a changed policy, uninstalls. As root. Each check prints `ok NAME` or `FAILED NAME`.
set -u
tarball=$(realpath "${1:?usage: tarball.sh TARBALL}")
failed=0

check() { # NAME COMMAND...
    local name=$1 said
    shift
    if said=$("$@" 2>&1); then echo "ok $name"; else
        echo "FAILED $name: $said"
        failed=$((failed + 1))
    fi
}
not() { ! "$@"; }
inside() { chroot "$root" /bin/sh -c "$1"; }
installs() { inside 'cd /fatpath-* && packaging/install.sh ./fatpath'; }
prints() { inside "$2" 2>&1 | grep -q -- "$1"; }

root=$(mktemp -d) || exit 1
clean() {
    ! mountpoint -q "$root/proc" || umount "$root/proc"
    rm -rf --one-file-system "$root"
}
trap clean EXIT
mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,proc,dev,etc,tmp} && cp /bin/busybox "$root/bin/" || exit 1
chroot "$root" /bin/busybox --install || exit 1
mount -t proc proc "$root/proc" && mknod -m 666 "$root/dev/null" c 1 3 && ln -s /proc/self/fd/0 "$root/dev/stdin" || exit 1
echo '127.0.0.1 far.example' >"$root/etc/hosts"
echo 'root:x:0:' >"$root/etc/group"
tar -xzf "$tarball" -C "$root" || exit 1

check "it installs" installs
check "it runs" inside 'fatpath --version'
check "it says that it cannot make the group" prints "group fatpath" 'cd /fatpath-* && packaging/install.sh ./fatpath'
check "the policy is good" inside 'fatpath policy check'
check "it finds a host by its name" prints 'port 1 refuses' 'fatpath try far.example --port 1'
check "it simulates" inside 'fatpath sim /usr/local/share/doc/fatpath/experiments/paths/10g-50ms.toml --list'
check "man pages are there" test -s "$root/usr/local/share/man/man1/fatpath-flows.1"
check "completions are there" test -s "$root/usr/local/share/bash-completion/completions/fatpath"
check "the unit starts what was installed" grep -q '^ExecStart=/usr/local/bin/fatpath daemon' "$root/etc/systemd/system/fatpath.service"
echo '# mine' >>"$root/etc/fatpath/policy.toml"
check "it installs again" installs
check "the policy stays as it was" grep -q '^# mine' "$root/etc/fatpath/policy.toml"
check "it is uninstalled" inside 'cd /fatpath-* && packaging/install.sh --uninstall'
check "the configuration alone is left" test "$(cd "$root" && find usr/local etc/systemd usr/lib etc/fatpath -type f | sort | tr '\n' ' ')" = "etc/fatpath/measure.toml etc/fatpath/policy.toml "
echo "$failed checks failed"
[ "$failed" = 0 ]
