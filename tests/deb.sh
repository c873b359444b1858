#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The Debian package in a clean Debian: deb.sh BINARY [RELEASE]. Installs, upgrades, removes, purges, and looks at what is
# there. As root. Each check prints `ok NAME` or `FAILED NAME`. The Debian (bookworm) is fetched once, into target/debian;
# the packages, of a build for tests, are made where they are forgotten. The first minute after the installation, and an
# upgrade while a flow sends, are tried on an emulated path, with the daemon started by hand. `make test-systemd` tests
# the service under systemd.
set -u
cd "$(dirname "$0")/.." || exit 1
work=target/debian
release=${2:-bookworm}
debian=$work/$release
# systemd for systemctl, systemd-analyze and systemd-sysusers.
packages=libelf1,zlib1g,passwd,systemd
services='fatpath-responder.service
fatpath.service'
failed=0

check() { # NAME COMMAND...
    local name=$1 said
    shift
    if said=$("$@" 2>&1); then echo "ok $name"; else
        echo "FAILED $name: ${*%%$'\n'*}: $said" # of a list its first line
        failed=$((failed + 1))
    fi
}
not() { ! "$@"; }
inside() { chroot "$root" "$@"; }
# Without what package management itself leaves: its database and logs, and the backups of /etc/group.
listed() {
    (cd "$root" && find . -xdev ! -path './proc/*' ! -path './run/*' ! -path './var/lib/dpkg/*' ! -path './var/log/*' \
        ! -path './var/cache/*' ! -path './etc/*-' ! -name '.pwd.lock' -printf '%y %m %p\n' | sort)
}
are_enabled() { same "$1" "$(inside find /etc/systemd/system -path '*.wants/fatpath*' -printf '%f\n' | sort)"; }
package() { FATPATH_DEB_VERSION=$1 packaging/deb.sh "$binary" "$scratch"; }
put() { cp "$1" "$root/tmp/fatpath.deb" && inside dpkg --install /tmp/fatpath.deb && rm "$root/tmp/fatpath.deb"; }
same() { diff <(echo "$1") <(echo "$2"); }

# The first host of the lab, in the clean Debian.
here() { nsenter --net=/run/netns/fp-deb-here chroot "$root" "$@"; }
on() { "$binary" lab exec --lab deb "$@"; }
until_so() {
    local end=$((SECONDS + 20))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}
listens() { [ -n "$(on there -- ss -Hltn sport = :5201)" ]; }
# 2 MB from here to there.
sends() { on here -- iperf3 --client 10.77.0.2 --bytes "${1:-2M}"; }
prints() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" | grep -q -- "$text"
}
suggests_and_applies() {
    here fatpath policy suggest 10.77.0.2 --rate 100mbit >>"$root/etc/fatpath/policy.toml" && inside fatpath policy apply
}
# docs/install.md, "The first minute": the package is installed (1), the daemon is started (2), and a rule is written and
# applied (3). From then on flows of the path are tuned.
first_minute() {
    local began=$SECONDS
    printf 'name = "deb"\n[hosts.here]\n[hosts.there]\n[links.far]\nbetween = ["here", "there"]
rate = "100mbit"\ndelay = "25ms"\nqueue = "1bdp"\n' >"$scratch/deb.toml"
    check "a far path" "$binary" lab up "$scratch/deb.toml"
    check "its other end listens" on there -- iperf3 --server --daemon
    until_so listens
    mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys"
    starts
    check "the daemon starts with the installed policy" until_so inside fatpath status
    check "a first transfer" sends
    check "paths: its path was learned" until_so prints 10.77.0.0/24 inside fatpath paths
    check "policy suggest writes a rule, and policy apply gives it" suggests_and_applies
    sends 40M >/dev/null &
    check "flows: the next transfer is tuned by it" until_so prints to-10.77.0.2 inside fatpath flows
    wait $!
    check "all that takes less than a minute" test $((SECONDS - began)) -lt 60
}
starts() {
    chroot "$root" fatpath daemon >>"$scratch/daemon" 2>&1 &
    daemon=$!
}
# What the package does where systemd runs: the old daemon works until it is started anew.
upgrade_under_traffic() {
    on here -- iperf3 --client 10.77.0.2 --time 60 >"$scratch/traffic" &
    local traffic=$!
    check "a flow sends, tuned" until_so prints to-10.77.0.2 inside fatpath flows
    check "it upgrades while the flow sends" put "$two"
    check "the old daemon goes on" prints to-10.77.0.2 inside fatpath flows
    kill $daemon
    wait $daemon
    starts
    check "the new daemon starts" until_so inside fatpath status
    check "it took over what was loaded" grep -q "took over" "$scratch/daemon"
    check "the flow has its rule still" until_so prints to-10.77.0.2 inside fatpath flows
    check "the flow was not cut" kill -0 $traffic
    check "unload takes everything back" inside fatpath unload
    away
    wait
}
# What the first minute needs, and nothing of it is left.
away() {
    ! [ -d /run/netns ] || ! ip netns list | grep -q '^fp-deb-' || "$binary" lab down deb >/dev/null
    ! mountpoint -q "$root/sys" || umount -R "$root/sys"
}

binary=$(realpath "${1:?usage: deb.sh BINARY [RELEASE]}")
mkdir -p "$work"
if [ ! -d "$debian" ]; then
    echo "fetching Debian's $release"
    rm -rf "$debian.new"
    mmdebstrap --quiet --variant=essential --include=$packages "$release" "$debian.new" || exit 1
    mv "$debian.new" "$debian"
fi
scratch=$(mktemp -d) || exit 1
root=$scratch/root
clean() {
    away
    ! mountpoint -q "$root/proc" || umount "$root/proc"
    rm -rf --one-file-system "$scratch"
}
trap clean EXIT
cp -a "$debian" "$root" && mount -t proc proc "$root/proc" || exit 1

one=$(package 0.1.0-1) && two=$(package 0.1.0-2) && three=$(package 0.1.0-3) || exit 1
before=$(listed) groups=$(cat "$root/etc/group")
check "it installs" put "$one"
check "nothing of it is missing or changed" inside dpkg --verify fatpath
check "it runs" inside fatpath --version
check "the group is there" inside getent group fatpath
check "the policy is good" inside fatpath policy check
check "the units are good" inside systemd-analyze verify --man=no $(printf "/usr/lib/systemd/system/%s " $services)
check "none is enabled" are_enabled ""
check "man pages are compressed" test -s "$root/usr/share/man/man1/fatpath-flows.1.gz"
check "completions are there" inside bash -c '. /usr/share/bash-completion/completions/fatpath && complete -p fatpath'
first_minute
upgrade_under_traffic
check "the administrator enables them" inside systemctl enable fatpath fatpath-responder
check "the administrator makes a key" inside fatpath keys new
echo '# mine' >>"$root/etc/fatpath/policy.toml"
check "it upgrades" put "$three"
check "the new version is there" inside sh -c 'dpkg-query -W -f "\${Version}" fatpath | grep -qx 0.1.0-3'
check "the policy stays as it was" grep -q '^# mine' "$root/etc/fatpath/policy.toml"
check "they are still enabled" are_enabled "$services"
check "it is removed" inside dpkg --remove fatpath
check "the program is gone" not test -e "$root/usr/bin/fatpath"
check "the policy stays after a removal" grep -q '^# mine' "$root/etc/fatpath/policy.toml"
check "none is enabled any longer" are_enabled ""
check "a removal leaves the keys" test -s "$root/etc/fatpath/key"
mkdir -p "$root/var/lib/fatpath/archive" && touch "$root/var/lib/fatpath/archive/day"
mkdir -p "$root/var/lib/private/fatpath-responder" && ln -s private/fatpath-responder "$root/var/lib"
check "it is purged" inside dpkg --purge fatpath
check "nothing is left" same "$before" "$(listed)"
check "the groups are as before" same "$groups" "$(cat "$root/etc/group")"
echo "$failed checks failed"
[ "$failed" = 0 ]
