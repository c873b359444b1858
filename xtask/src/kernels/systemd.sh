#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest with systemd: what an administrator does with fatpath.service and fatpath-responder.service. Each check prints `ok NAME` or `FAILED NAME`.
# The first boot ends with a reboot, the second with the machine off.
set -u
export SYSTEMD_COLORS=0
POLICY=/etc/fatpath/policy.toml
DROP_IN=/etc/systemd/system/fatpath.service.d/test.conf
EARLY=/var/lib/early

# Asks again for two minutes: in an emulated machine all is slow.
until_so() {
    local end=$((SECONDS + 120))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}
check() { # NAME COMMAND...
    local name=$1 said
    shift
    if said=$("$@" 2>&1); then echo "ok $name"; else
        echo "FAILED $name: $*: $said"
        journalctl --no-pager -o cat -u fatpath -u fatpath-responder -n 15
    fi
}
not() { ! "$@"; }
policy() { # LAW
    printf '[host.sysctl]\n"net.core.wmem_max" = "auto"\n[[rule]]\nname = "one"\ndestination = ["127.0.8.0/24"]
send_buffer = 7000000\ncongestion_control = "%s"\n' "$1" >$POLICY
}
# A flow that goes on: its port is the argument.
flow() {
    iperf3 --server --one-off --port "$1" --daemon
    until_so listens "$1"
    iperf3 --client 127.0.8.1 --port "$1" --time 3000 --bitrate 100k --interval 0 >/dev/null 2>&1 &
    until_so flows "$1"
}
listens() { [ -n "$(ss -Hltn sport = ":$1")" ]; }
flows() { [ "$(ss -Htn state established dport = ":$1" | wc -l)" = 2 ]; }
has_law() { # PORT LAW: both connections of the flow.
    [ "$(ss -Htin state established dport = ":$1" | grep -cw "$2")" = 2 ]
}
is_active() { systemctl --quiet is-active fatpath; }
pid() { systemctl show --property MainPID --value fatpath; }
restarted_from() { [ "$(pid)" != 0 ] && [ "$(pid)" != "$1" ] && is_active; }
journal() { journalctl --no-pager -o cat -b; }
entered() { systemctl show --property ActiveEnterTimestampMonotonic --value "$1"; }

starts() {
    check "sysusers makes the group" systemd-sysusers
    check "the group is there" getent group fatpath
    check "enable" systemctl enable fatpath
    umount /sys/fs/bpf
    check "start without a BPF file system" systemctl start fatpath
    check "the BPF file system is everybody's" test -d /sys/fs/bpf/fatpath
    check "it answers" fatpath status
    check "the group may use the socket" test "$(stat -c %G:%a /run/fatpath/fatpath.sock)" = fatpath:660
    check "no unit is in an ordering cycle" not grep -q "ordering cycle" <(journal)
    check "systemd-analyze security says 3.0 or better" systemd-analyze security --threshold=30 fatpath.service
    systemd-analyze security --no-pager fatpath.service | tail -1
}

# As it is installed: with a key of its own, for whom its file names.
responds() {
    printf '[responder]\nlisten = "127.0.0.1:4748"\n' >/etc/fatpath/measure.toml
    check "the responder starts" systemctl start fatpath-responder
    check "it runs" until_so runs_responder
    check "it has a key" grep -q ^ed25519: /var/lib/fatpath-responder/key.pub
    check "its key is nobody else's" test "$(stat -Lc %a /var/lib/fatpath-responder/key)" = 600
    check "the administrator has a key" fatpath keys new
    printf '[responder]\nlisten = "127.0.0.1:4748"\nclock_error = "1ms"\n[[peer]]\nname = "a"\nprefix = "127.0.0.1"\nkey = "%s"\nkinds = ["echo", "one_way", "rate"]\n' \
        "$(fatpath keys show)" >/etc/fatpath/measure.toml
    check "it reads its file again" systemctl reload fatpath-responder
    check "it is trusted" fatpath keys trust host "$(cat /var/lib/fatpath-responder/key.pub)" 127.0.0.1
    check "it answers" until_so fatpath measure echo 127.0.0.1 --duration 1s
    check "it records trains" until_so fatpath measure rate 127.0.0.1 --most-rate 100mbit
    check "it answers of times" fatpath measure one-way 127.0.0.1 --duration 1s --clock-error 1ms
    check "it starts again with its key" systemctl restart fatpath-responder
    check "and answers" until_so fatpath measure echo 127.0.0.1 --duration 1s
    check "systemd-analyze security says 2.0 or better" systemd-analyze security --threshold=20 fatpath-responder.service
    check "the responder stops" systemctl stop fatpath-responder
    rm -f /etc/fatpath/measure.toml /etc/fatpath/key /etc/fatpath/known_hosts
}
runs_responder() { fatpath measure status --json | grep -q '"is_running": true'; }

tunes() {
    check "a new flow is tuned" flow 5001
    check "by its rule" until_so has_law 5001 fp_aimd
    check "a sysctl is raised" test "$(cat /proc/sys/net/core/wmem_max)" -ge 7000000
    ip netns add other
    ip -n other link set lo up
    ip netns exec other /usr/local/bin/checks flow 5002
    policy fp_reno
    check "reload" systemctl reload fatpath
    check "a live flow gets the new law" until_so has_law 5001 fp_reno
    check "one in another network namespace too" until_so ip netns exec other /usr/local/bin/checks has_law 5002 fp_reno
}

is_killed() {
    local before
    before=$(pid)
    systemctl kill --signal KILL --kill-who main fatpath
    check "kill -9: it comes back" until_so restarted_from "$before"
    check "it takes over" grep -q "took over" <(journal)
    check "the flow has its tuning still" has_law 5001 fp_reno
}

# Holds a thread of the daemon by ptrace(2), PTRACE_ATTACH on x86_64: it stops no other. Ends with the thread.
hold() {
    perl -e 'syscall(101, 16, $ARGV[0] + 0, 0, 0) == 0 or die $!; waitpid($ARGV[0], 0x40000000) for 1, 2' "$1"
}

thread() {
    basename "$(dirname "$(grep -lx "$1" /proc/"$(pid)"/task/*/comm)")"
}

stands_still() {
    local before
    mkdir -p ${DROP_IN%/*}
    printf '[Service]\nWatchdogSec=20s\n' >$DROP_IN
    systemctl daemon-reload
    check "restart" systemctl restart fatpath
    before=$(pid)
    hold "$(thread "flow ends")" &
    check "a worker that stands still has it started again" until_so restarted_from "$before"
    check "the daemon names the worker" grep -q "no progress.*flow ends" <(journal)
    check "by the watchdog" grep -qi "watchdog timeout" <(journal)
    rm -r ${DROP_IN%/*}
    systemctl daemon-reload
    check "restart without the drop-in" systemctl restart fatpath
    check "the flow went on" has_law 5001 fp_reno
}

stops() {
    check "stop" systemctl stop fatpath
    check "tuning stays" has_law 5001 fp_reno
    check "also for new flows" flow 5004
    check "by their rule" until_so has_law 5004 fp_reno
    check "unload" fatpath unload
    check "no pins" not test -e /sys/fs/bpf/fatpath
    check "no laws" not grep -q fp_ /proc/sys/net/ipv4/tcp_available_congestion_control
    check "the flow has the host's law" has_law 5001 cubic
    check "the sysctl is as before" test "$(cat /proc/sys/net/core/wmem_max)" = "$wmem_max"
    check "the daemon logged no error of its own" no_errors
}

# Those of the worker that was made to stand still are wanted.
no_errors() {
    local said
    said=$(journalctl --no-pager -o cat -b -p err _SYSTEMD_UNIT=fatpath.service | grep -v "no progress")
    [ -z "$said" ] || { echo "$said"; return 1; }
}

first_boot() {
    wmem_max=$(cat /proc/sys/net/core/wmem_max)
    policy fp_aimd
    starts
    responds
    tunes
    is_killed
    stands_still
    stops
    check "start after an unload" systemctl start fatpath
    rm -f $EARLY
    touch /var/lib/rebooted
    echo "== end"
    systemctl reboot
}

second_boot() {
    check "it runs after a reboot" until_so is_active
    check "no unit is in an ordering cycle" not grep -q "ordering cycle" <(journal)
    check "it was ready before the network" test "$(entered fatpath)" -lt "$(entered network-pre.target)"
    check "a service that starts with the network is tuned" until_so grep -qw fp_reno $EARLY
    check "stop for the end" systemctl stop fatpath
    check "unload for the end" fatpath unload
    echo "== end"
    systemctl poweroff
}

case "${1:-}" in
early) flow 5009 && ss -Htin state established dport = :5009 >$EARLY ;;
?*) "$@" ;;
*) if [ -e /var/lib/rebooted ]; then second_boot; else first_boot; fi ;;
esac
