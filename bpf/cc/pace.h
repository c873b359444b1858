/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much more than a law's rate a host is told to pace at, so that it sends at that rate. Linux sends when its timer
 * wakes it, and makes up for at most half of the time of what it then sends (tcp_update_skb_after_send()): nothing is
 * lost with bursts of 64 KiB, but most of the delay is where a retransmission leaves by itself.
 *
 * It goes by what was asked and what was sent while nothing but the pace held the flow back. Start at cc_pace_note().
 */
#ifndef FATPATH_CC_PACE_H
#define FATPATH_CC_PACE_H

#include "start.h"

#define CC_PACE_WINDOW_US 100000 /* what leaves in bursts of 1 ms is counted to 1 % */
#define CC_PACE_MOST_MILLI 1125	 /* no more than half of what ProbeBW_UP asks for */
#define CC_PACE_SMOOTHING 4

struct cc_pace {
	cc_u64 from_us; /* 0 = not counting */
	cc_u64 last_us;
	cc_u64 asked_bytes;
	cc_u64 from_sent_bytes;
	cc_u32 gain_milli; /* 0 = as asked */
	cc_u32 pad;
};

static inline cc_u32 cc_pace_gain_milli(const struct cc_pace *p)
{
	return p->gain_milli ? p->gain_milli : 1000;
}

/* What to tell the host. */
static inline cc_u64 cc_pace_rate(const struct cc_pace *p, cc_u64 bytes_per_s)
{
	return cc_scaled(bytes_per_s, cc_pace_gain_milli(p), 1000);
}

static inline void cc_pace_begin(struct cc_pace *p, cc_u64 now_us, cc_u64 sent_bytes)
{
	p->from_us = now_us;
	p->last_us = now_us;
	p->asked_bytes = 0;
	p->from_sent_bytes = sent_bytes;
}

static inline cc_u32 cc_pace_wanted_milli(const struct cc_pace *p, cc_u64 sent_bytes)
{
	cc_u64 wanted =
		cc_scaled(p->asked_bytes, cc_pace_gain_milli(p), 1) / (sent_bytes ? sent_bytes : 1);

	if (wanted < 1000)
		return 1000;
	return wanted < CC_PACE_MOST_MILLI ? (cc_u32)wanted : CC_PACE_MOST_MILLI;
}

/*
 * At each acknowledgement, with the rate that held until now. `is_held`: by the window, the peer or the program. What
 * was asked in a pause between two acknowledgements is not known to have been wanted.
 */
static inline void cc_pace_note(struct cc_pace *p, cc_u64 now_us, cc_u64 bytes_per_s,
				cc_u64 sent_bytes, int is_held)
{
	cc_u64 passed_us = now_us - p->last_us;
	cc_u32 wanted_milli;

	if (is_held || !p->from_us || passed_us > CC_PACE_WINDOW_US) {
		cc_pace_begin(p, now_us, sent_bytes);
		return;
	}
	p->asked_bytes += cc_scaled(bytes_per_s, (cc_u32)passed_us, 1000000);
	p->last_us = now_us;
	if (now_us - p->from_us < CC_PACE_WINDOW_US)
		return;
	wanted_milli = cc_pace_wanted_milli(p, sent_bytes - p->from_sent_bytes);
	p->gain_milli = (cc_pace_gain_milli(p) * (CC_PACE_SMOOTHING - 1) + wanted_milli) /
			CC_PACE_SMOOTHING;
	cc_pace_begin(p, now_us, sent_bytes);
}

#endif
