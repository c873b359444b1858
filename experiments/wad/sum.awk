# SPDX-License-Identifier: MIT OR Apache-2.0
# Of a series of figure-3.toml: time, the window of each flow, and their sum, segments.
#   awk -F, -f experiments/wad/sum.awk out/wad-figure-3-sim/series/default.default.1.csv
NR > 1 { if (!($3 in sum)) times[++count] = $3; windows[$3] = windows[$3] " " $4; sum[$3] += $4 }
END { for (i = 1; i <= count; i++) print times[i] windows[times[i]], sum[times[i]] }
