/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HighSpeed TCP, RFC 3649, 5: a window w grows by a(w) segments a round trip and
 * gives up b(w) of itself; up to Low_Window it is Reno. In the logarithm of w, b(w)
 * falls linearly from 0.5 at Low_Window to High_Decrease at High_Window, and the
 * logarithm of p(w) from Reno's 1.44 / Low_Window^2 to High_P;
 * a(w) = w^2 p(w) 2 b(w) / (2 - b(w)), never below Reno's 1. Past High_Window both
 * lines go on, as in Appendix B, b(w) to half of High_Decrease.
 *
 * With the RFC's own three numbers its own rounding is taken, p(w) = 1 / (12.8 w^1.2),
 * from which it printed Appendix B.
 */
#ifndef FATPATH_CC_HIGHSPEED_H
#define FATPATH_CC_HIGHSPEED_H

#include "fixed.h"

#define CC_HIGHSPEED_PARAMS(P)                                                                     \
	P(low_window_pkts, 2, 65536, 38, "segments: up to this window it is Reno")                 \
	P(high_window_pkts, 3, 1 << 30, 83000, "segments: the window reached at a loss of high_p") \
	P(high_p_pico, 1, 1000000000, 100000, "loss rate at which high_window is reached")         \
	P(high_decrease_milli, 1, 500, 100,                                                        \
	  "fraction of high_window given up at a congestion event")
CC_PARAMS_OF(highspeed, CC_HIGHSPEED_PARAMS)
CC_NOTHING_TO_UNDO(highspeed)
CC_HYSTART_BY_DEFAULT(highspeed, 0)

/* log2(1.44), and -log2(1 / (12.8 w^1.2)) at 38 and 83,000 segments. */
#define CC_HIGHSPEED_LOG_RENO 8825970
#define CC_HIGHSPEED_RFC_LOW 167362543
#define CC_HIGHSPEED_RFC_HIGH 390692042

/* High_Window above Low_Window, and High_P below Reno's loss rate at Low_Window. */
static inline int cc_highspeed_is_consistent(const struct cc_highspeed *p)
{
	cc_u64 low = p->low_window_pkts;

	return p->high_window_pkts > low && p->high_p_pico * low * low < 1440000000000ull;
}

static inline cc_u64 cc_highspeed_place(const struct cc_highspeed *p, cc_u32 cwnd_pkts)
{
	return cc_log_place(cwnd_pkts, p->low_window_pkts, p->high_window_pkts);
}

/* b(w) in 2^-20. */
static inline cc_u32 cc_highspeed_b(const struct cc_highspeed *p, cc_u64 place)
{
	cc_u32 half = 1u << 19, high = (p->high_decrease_milli << 20) / 1000;
	cc_u64 b = half - ((half - high) * place >> CC_LOG_BITS);

	return b <= half && b >= high / 2 ? (cc_u32)b : high / 2;
}

/* log2 of w^2 p(w), 0 at least. */
static inline cc_u64 cc_highspeed_log_square_p(const struct cc_highspeed *p, cc_u32 cwnd_pkts,
					       cc_u64 place)
{
	int is_rfc = p->low_window_pkts == 38 && p->high_window_pkts == 83000 &&
		     p->high_p_pico == 100000;
	cc_u32 low = 2 * cc_log2(p->low_window_pkts) - CC_HIGHSPEED_LOG_RENO;
	cc_u32 high = CC_LOG_TERA - cc_log2(p->high_p_pico);
	cc_u64 square = 2ull * cc_log2(cwnd_pkts), loss;

	if (is_rfc)
		low = CC_HIGHSPEED_RFC_LOW, high = CC_HIGHSPEED_RFC_HIGH;
	loss = low + ((high > low ? high - low : 0) * place >> CC_LOG_BITS);
	return square > loss ? square - loss : 0;
}

/* a(w) in 2^-14, from 1 to 131,071 segments; w^2 p(w) is held below 2^20. */
CC_CHECKED_ALONE cc_u32 cc_highspeed_a(const struct cc_highspeed *p, cc_u32 cwnd_pkts)
{
	cc_u64 place, log, a;
	cc_u32 b;

	if (!p)
		return CC_POWER_ONE;
	place = cc_highspeed_place(p, cwnd_pkts);
	b = cc_highspeed_b(p, place);
	log = cc_highspeed_log_square_p(p, cwnd_pkts, place);
	a = cc_exp2(log < 20 * CC_LOG_ONE ? log : 20 * CC_LOG_ONE) * 2 * b / ((2u << 20) - b);
	if (a < CC_POWER_ONE || cwnd_pkts <= p->low_window_pkts)
		return CC_POWER_ONE;
	return a < 0x7fffffff ? (cc_u32)a : 0x7fffffff;
}

/* a(w) is worked out once for a window: most acknowledgements leave it as it is. */
static inline void cc_highspeed_acked(struct cc_window *w, const struct cc_highspeed *p,
				      cc_u32 acked_pkts)
{
	if (!cc_memo_fits(w, (const cc_u32 *)p, sizeof(*p) / sizeof(cc_u32)))
		cc_memo(w)->result = cc_highspeed_a(p, w->cwnd_pkts);
	cc_grow_in_round_trip(w, cc_memo(w)->result, CC_POWER_ONE, acked_pkts);
}

/* At Low_Window and below b(w) is Reno's half. */
static inline cc_u32 cc_highspeed_ssthresh(const struct cc_window *w, const struct cc_highspeed *p)
{
	cc_u32 b = cc_highspeed_b(p, cc_highspeed_place(p, w->cwnd_pkts));

	return cc_part_of_window(w, (1u << 20) - b, 1u << 20);
}

#endif
