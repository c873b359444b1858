# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest: flows of one law of fatpath's and as many of the kernel's own, side by side over one
# path; each pair of iperf3 prints `== result LAW JSON`, each pair of laws how idle the guest was.
# Arguments: flows of each law, seconds, milliseconds each way, then pairs OURS=THEIRS.
# A shell of busybox may prefer its own applets to what is in its path.
ip() { /usr/bin/ip "$@"; }
tc() { /usr/bin/tc "$@"; }
flows=$1 seconds=$2 delay_ms=$3
shift 3

# Random loss is of packets only when packets are single: no offload.
netem="delay ${delay_ms}ms rate 1gbit limit 200000"
ip netns add a
ip netns add b
ip link add eth0 netns a type veth peer name eth0 netns b
for host in a b; do
    ip -n $host link set eth0 up
    ip netns exec $host ethtool -K eth0 tso off gso off gro off >/dev/null
    # Room for windows well above what 1e-4 loss leaves, and a bound for the first slow start.
    ip netns exec $host sysctl -qw net.ipv4.tcp_rmem='4096 8000000 8000000' \
        net.ipv4.tcp_wmem='4096 8000000 8000000' net.ipv4.tcp_no_metrics_save=1
done
ip -n a address add 10.0.0.1/24 dev eth0
ip -n b address add 10.0.0.2/24 dev eth0
ip netns exec a tc qdisc add dev eth0 root netem $netem loss 0.01%
ip netns exec b tc qdisc add dev eth0 root netem $netem

printf '[[rule]]\nname = "none"\ndestination = ["192.0.2.1"]\nsend_buffer = 100000\n' >/tmp/policy.toml
fatpath daemon --policy /tmp/policy.toml --flow-log /tmp/flows 2>/tmp/daemon.log &
until [ -e /run/fatpath/ready ]; do sleep 1; done

idle_ticks() { awk '/^cpu /{print $5}' /proc/stat; }
measure() { # port law
    ip netns exec b iperf3 -s -1 -p "$1" >/dev/null 2>&1 &
    sleep 2
    ip netns exec a iperf3 -c 10.0.0.2 -p "$1" -C "$2" -P "$flows" -t "$seconds" -O 20 -i 0 \
        -l 128K --json >"/tmp/$2.json" 2>&1
}

for pair in "$@"; do
    ours=${pair%=*} theirs=${pair#*=}
    modprobe "tcp_$theirs" 2>/dev/null
    before=$(idle_ticks)
    measure 5001 "$ours" & first=$!
    measure 5002 "$theirs" & second=$!
    wait $first $second
    echo "== idle $ours $((100 * ($(idle_ticks) - before) / (200 * (seconds + 20)))) %"
    for law in "$ours" "$theirs"; do
        echo "== result $law $(tr -d '\n\t' <"/tmp/$law.json")"
    done
done
fatpath unload
