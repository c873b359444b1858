# SPDX-License-Identifier: MIT OR Apache-2.0
# Of a series of synchronised.toml, from 20 s on: the episodes of loss, which are reductions of a bulk flow's threshold
# with less than 0.2 s (two round trips) between one and the next, and the share of the flows that lost in an episode:
#   awk -F, -f experiments/scalable/synchronised.awk out/synchronised-sim/series/default.fp_reno.queue=1bdp.1.csv
$1 !~ /bulk/ { next }
{ flow = $1 "," $2; flows[flow] }
$5 != "" && $5 != last[flow] && $3 >= 20 { at[int($3 * 10 + 0.5)] = at[int($3 * 10 + 0.5)] flow " "; end = $3 > end ? $3 : end }
{ last[flow] = $5 }
function close_episode() { if (lost > 0) { episodes++; shares += lost / length(flows) } delete seen; lost = 0 }
END {
	for (tick = 200; tick <= end * 10; tick++) {
		if (!(tick in at)) { if (++quiet >= 2) close_episode(); continue }
		quiet = 0
		n = split(at[tick], names, " ")
		for (i = 1; i <= n; i++) if (!(names[i] in seen)) { seen[names[i]]; lost++ }
	}
	close_episode()
	printf "%s: %d episodes, %.2f of the flows lost in each\n", FILENAME, episodes, shares / episodes
}
