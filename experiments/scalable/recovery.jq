# SPDX-License-Identifier: MIT OR Apache-2.0
# From an iperf3 client's JSON: how long the window took to be again what it was before the last loss.
#   jq -f experiments/scalable/recovery.jq out/recovery-kernel/runs/default.b-8.1.2-client-iperf3.out
[.intervals[].streams[0] | { at: .end, snd_cwnd, retransmits }] as $all
| ([range($all | length) | select($all[.].retransmits > 0)] | last) as $loss
| $all[$loss - 1].snd_cwnd as $prior
| first($all[$loss:][] | select(.snd_cwnd >= $prior)).at - $all[$loss].at
