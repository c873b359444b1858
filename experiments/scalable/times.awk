# SPDX-License-Identifier: MIT OR Apache-2.0
# How long a series of recovery.toml took to halve the window while it lost segments in each round trip from 60 s on,
# and to double it afterwards, from 50 segments or what was left:
#   awk -F, -f experiments/scalable/times.awk out/recovery-sim/series/default.b-8.1.csv
NR == 1 { next }
$3 > 59.5 && $4 < 1667 && !falls { falls = $3 }
falls && $4 <= 834 && !half { half = $3 }
$3 >= 63.5 && $4 >= 50 && !rises { rises = $3; from = $4 }
rises && $4 >= 2 * from && !twice { twice = $3 }
END { printf "halved in %.2f s, doubled from %d in %.2f s\n", half - falls, from, twice - rises }
