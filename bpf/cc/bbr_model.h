/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR's model of the path: how fast it delivers, how long it takes, how much of it is safe. Names and numbers of
 * sections are those of draft-ietf-ccwg-bbr-06 (BBR version 3), where a paragraph gives no other source.
 *
 * Bandwidths are in segments a microsecond and 2^-24, as in Linux: 256 segments a microsecond at most, 3 Tb/s of
 * 1,448 bytes, and in steps of 700 b/s. The state machine is in bbr.h.
 */
#ifndef FATPATH_CC_BBR_MODEL_H
#define FATPATH_CC_BBR_MODEL_H

#include "rate.h"

#define CC_BBR_BW_BITS 24

/* No bound, and no measurement of a time. */
#define CC_BBR_NONE 0xffffffffu

/* Sections 2.7, 2.8 and 5.3.3.8: the draft's constants where a rule gives no others. */
#define CC_BBR_PARAMS(P)                                                                           \
	P(loss_thresh_milli, 1, 500, 20, "loss in a round trip above which a probe went too far")  \
	P(beta_milli, 300, 950, 700,                                                               \
	  "least part of the short-term bounds kept after a lossy round")                          \
	P(headroom_milli, 0, 500, 150,                                                             \
	  "part of the long-term bound left to others while cruising")                             \
	P(pacing_margin_milli, 0, 100, 10, "part of the bandwidth by which pacing stays below it") \
	P(probe_rounds, 4, 1000, 63, "round trips after which bandwidth is probed at the latest")
CC_PARAMS_OF(bbr, CC_BBR_PARAMS)
CC_ALWAYS_CONSISTENT(bbr)
CC_HYSTART_BY_DEFAULT(bbr, 0)

#define CC_BBR_MIN_PIPE_PKTS 4		  /* 2.7: MinPipeCwnd */
#define CC_BBR_FULL_ROUNDS 3		  /* 5.3.1.2 */
#define CC_BBR_QUEUE_PART 8		  /* of the least round trip: cc_bbr_makes_queue() */
#define CC_BBR_PROBE_GROWN_MILLI 1125	  /* half of what ProbeBW_UP asks for */
#define CC_BBR_DOWN_GAIN_MILLI 900	  /* 5.6.1: pacing in ProbeBW_DOWN */
#define CC_BBR_PROBE_RTT_GAIN_MILLI 500	  /* 5.6.1: window in ProbeRTT */
#define CC_BBR_CLEARLY_MORE_MILLI 1060	  /* six pacing margins: cc_bbr_counts() */
#define CC_BBR_STARTUP_FULL_LOSSES 6	  /* 5.3.1.3 */
#define CC_BBR_DRAIN_ROUNDS 3		  /* 5.3.2 */
#define CC_BBR_MIN_RTT_FILTER_US 10000000 /* 2.16.1 */
#define CC_BBR_PROBE_RTT_EVERY_US 5000000 /* 2.16.2: ProbeRTTInterval */
#define CC_BBR_PROBE_RTT_ROUNDS 50	  /* cc_bbr_probe_rtt_every_us() */
#define CC_BBR_PROBE_RTT_US 200000	  /* 2.16.2: ProbeRTTDuration */
#define CC_BBR_EXTRA_ACKED_ROUNDS 5	  /* 2.12: ten, in two halves */
#define CC_BBR_QUANTUM_US 1000		  /* 5.6.3 */
#define CC_BBR_QUANTUM_BYTES 65536u	  /* 5.6.3 */
#define CC_BBR_OFFLOAD_QUANTA 3		  /* 5.5.8.1 */
#define CC_BBR_NOMINAL_RTT_US 1000	  /* 5.6.2, where none was measured */

/* Kept of the bounds after a round trip with an echo of congestion: RFC 8511, 3.1. The draft leaves it open (3.7). */
#define CC_BBR_ECN_BETA_MILLI 850

/* 5.1.1 */
enum cc_bbr_phase {
	CC_BBR_STARTUP,
	CC_BBR_DRAIN,
	CC_BBR_PROBE_BW_DOWN,
	CC_BBR_PROBE_BW_CRUISE,
	CC_BBR_PROBE_BW_REFILL,
	CC_BBR_PROBE_BW_UP,
	CC_BBR_PROBE_RTT,
	CC_BBR_NO_PHASE, /* of undo_phase */
};

/* 2.14: what acknowledgements tell of a probe for bandwidth */
enum cc_bbr_acks {
	CC_BBR_ACKS_INIT,
	CC_BBR_ACKS_REFILLING,
	CC_BBR_ACKS_PROBE_STARTING,
	CC_BBR_ACKS_PROBE_FEEDBACK,
	CC_BBR_ACKS_PROBE_STOPPING,
};

/* cc_bbr_state.flags */
#define CC_BBR_FULL_BW_REACHED 1u
#define CC_BBR_FULL_BW_NOW 2u
#define CC_BBR_PROBE_SAMPLE 4u /* is_bw_probe_sample */
#define CC_BBR_LOSS_IN_ROUND 8u
#define CC_BBR_CE_IN_ROUND 16u
#define CC_BBR_PREV_TOO_HIGH 32u
#define CC_BBR_PREV_PRECAUTIONARY 64u
#define CC_BBR_IDLE_RESTART 128u
#define CC_BBR_PROBE_RTT_EXPIRED 256u
#define CC_BBR_PROBE_RTT_ROUND_DONE 512u
#define CC_BBR_RECOVERED 1024u /* the acknowledgement before this was in recovery */
#define CC_BBR_HAS_RTT 2048u   /* the first pacing rate is of a measured round trip */
#define CC_BBR_ROUND_START 4096u
#define CC_BBR_LOSS_ROUND_START 8192u
#define CC_BBR_DISCARDS 16384u	      /* app_limited_until_pkts is set */
#define CC_BBR_CE 32768u	      /* this acknowledgement echoes congestion */
#define CC_BBR_IS_SLOW 65536u	      /* it sends less than `bw` */
#define CC_BBR_STARTS_AT_RATE 131072u /* see cc_bbr_start_at() */

/* What is remembered of a flow: section 2, and cc_rate_flow. */
struct cc_bbr_state {
	cc_u64 now_us; /* of the last acknowledgement or transmission */
	cc_u64 min_rtt_at_us;
	cc_u64 probe_rtt_min_at_us;
	cc_u64 probe_rtt_done_at_us; /* 0 = not known */
	cc_u64 cycle_at_us;
	cc_u64 extra_acked_from_us;
	cc_u64 start_until_us;	  /* of a start at a rate, */
	cc_u64 rate_before_start; /* the law's own, bytes a second, */
	cc_u32 start_tried_pkts;  /* and what was in flight in it */
	cc_u32 delivered_pkts;
	cc_u32 initial_window_pkts;
	cc_u32 bw;
	cc_u32 max_bw
		[2]; /* of this ProbeBW cycle, and of the one before; in Startup of its rounds' ends */
	cc_u32 bw_latest;
	cc_u32 bw_shortterm;
	cc_u32 full_bw;
	cc_u32 min_rtt_us;
	cc_u32 probe_rtt_min_us; /* probe_rtt_min_delay */
	cc_u32 next_round_delivered_pkts;
	cc_u32 loss_round_delivered_pkts;
	cc_u32 round_count;
	cc_u32 drain_start_round;
	cc_u32 rounds_since_probe_up;
	cc_u32 inflight_latest_pkts;
	cc_u32 inflight_shortterm_pkts;
	cc_u32 inflight_longterm_pkts;
	cc_u32 undo_bw_shortterm;
	cc_u32 undo_inflight_shortterm_pkts;
	cc_u32 undo_inflight_longterm_pkts;
	cc_u32 prior_cwnd_pkts;
	cc_u32 extra_acked_delivered_pkts;
	cc_u32 extra_acked_pkts[2]; /* of these rounds, and of those before */
	cc_u32 bw_probe_up_acked_pkts;
	cc_u32 probe_up_acked_per_inc_pkts;
	cc_u32 bw_probe_wait_us;
	cc_u32 app_limited_until_pkts;
	cc_u32 ce_pkts;
	cc_u32 probe_rtt_us;	  /* round trip when ProbeBW_UP began */
	cc_u32 probe_queued_pkts; /* arrived in a row through a queue that it made */
	cc_u32 slow_from_pkts;	  /* delivered when it began to send less than `bw`, */
	cc_u32 slow_until_pkts;	  /* and when that ended */
	cc_u32 slow_gain_milli;	  /* of `bw` */
	cc_u32 flags;
	cc_u8 phase;
	cc_u8 undo_phase;
	cc_u8 ack_phase;
	cc_u8 full_bw_count;
	cc_u8 losses_in_round; /* acknowledgements that found losses */
	cc_u8 bw_probe_up_rounds;
	cc_u8 extra_acked_rounds;
	cc_u8 pad;
} __attribute__((may_alias));
_Static_assert(sizeof(struct cc_bbr_state) <= sizeof(((struct cc_rate_flow *)0)->own), "it fits");

static inline struct cc_bbr_state *cc_bbr_of(struct cc_rate_flow *f)
{
	return (struct cc_bbr_state *)f->own;
}

static inline int cc_bbr_is(const struct cc_bbr_state *b, cc_u32 flag)
{
	return !!(b->flags & flag);
}

static inline void cc_bbr_flag(struct cc_bbr_state *b, cc_u32 flag, int is_set)
{
	b->flags = is_set ? b->flags | flag : b->flags & ~flag;
}

/* x milli / 1000 */
static inline cc_u32 cc_bbr_part(cc_u32 x, cc_u32 milli)
{
	cc_u64 part = (cc_u64)x * milli / 1000;

	return part < CC_BBR_NONE ? (cc_u32)part : CC_BBR_NONE - 1;
}

static inline int cc_bbr_is_probing_bw(const struct cc_bbr_state *b)
{
	return b->phase == CC_BBR_STARTUP || b->phase == CC_BBR_PROBE_BW_REFILL ||
	       b->phase == CC_BBR_PROBE_BW_UP;
}

static inline int cc_bbr_is_in_probe_bw(const struct cc_bbr_state *b)
{
	return b->phase >= CC_BBR_PROBE_BW_DOWN && b->phase <= CC_BBR_PROBE_BW_UP;
}

/* RS.delivery_rate; 0 = there is none. */
static inline cc_u32 cc_bbr_sampled_bw(const struct cc_rate_sample *s)
{
	cc_u64 bw;

	if (!s->interval_us)
		return 0;
	bw = ((cc_u64)s->sampled_pkts << CC_BBR_BW_BITS) / s->interval_us;
	return bw < CC_BBR_NONE ? (cc_u32)bw : CC_BBR_NONE - 1;
}

static inline cc_u32 cc_bbr_bw_of(cc_u64 pkts_per_s)
{
	cc_u64 bw = cc_scaled(pkts_per_s, 1u << CC_BBR_BW_BITS, 1000000);

	return bw < CC_BBR_NONE ? (cc_u32)bw : CC_BBR_NONE - 1;
}

static inline cc_u32 cc_bbr_max_bw(const struct cc_bbr_state *b)
{
	return cc_most(b->max_bw[0], b->max_bw[1]);
}

/* 5.5.6 AdvanceMaxBwFilter(); a cycle without a sample is none. */
static inline void cc_bbr_advance_max_bw(struct cc_bbr_state *b)
{
	if (!b->max_bw[0])
		return;
	b->max_bw[1] = b->max_bw[0];
	b->max_bw[0] = 0;
}

/* 5.6.4.2: what is in flight at `bw` without a queue. */
static inline cc_u32 cc_bbr_bdp_pkts(const struct cc_bbr_state *b, cc_u32 bw)
{
	cc_u64 pkts;

	if (b->min_rtt_us == CC_BBR_NONE)
		return b->initial_window_pkts;
	pkts = ((cc_u64)bw * b->min_rtt_us) >> CC_BBR_BW_BITS;
	return pkts < CC_INFINITE_SSTHRESH ? (cc_u32)pkts : CC_INFINITE_SSTHRESH;
}

/* 5.6.3 SetSendQuantum(), in whole segments */
static inline cc_u32 cc_bbr_send_quantum_pkts(const struct cc_rate_flow *f, cc_u32 mss_bytes)
{
	cc_u64 bytes = cc_scaled(f->pacing_bytes_per_s, CC_BBR_QUANTUM_US, 1000000);

	if (bytes > CC_BBR_QUANTUM_BYTES)
		bytes = CC_BBR_QUANTUM_BYTES;
	return cc_most((cc_u32)bytes / cc_most(mss_bytes, 1), 2);
}

/* 5.6.4.2 QuantizationBudget() */
static inline cc_u32 cc_bbr_quantized(struct cc_rate_flow *f, cc_u32 pkts, cc_u32 mss_bytes)
{
	cc_u32 offload = CC_BBR_OFFLOAD_QUANTA * cc_bbr_send_quantum_pkts(f, mss_bytes);

	pkts = cc_most(cc_most(pkts, offload), CC_BBR_MIN_PIPE_PKTS);
	return cc_bbr_of(f)->phase == CC_BBR_PROBE_BW_UP ? pkts + 2 : pkts;
}

/* 5.6.4.2 Inflight(1.0) */
static inline cc_u32 cc_bbr_inflight_pkts(struct cc_rate_flow *f, cc_u32 bw, cc_u32 mss_bytes)
{
	return cc_bbr_quantized(f, cc_bbr_bdp_pkts(cc_bbr_of(f), bw), mss_bytes);
}

/* 5.3.3.8 TargetInflight() */
static inline cc_u32 cc_bbr_target_pkts(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	return cc_least(cc_bbr_bdp_pkts(b, b->bw), f->cwnd_pkts);
}

/* 5.3.3.9 InflightWithHeadroom() */
static inline cc_u32 cc_bbr_headroom_pkts(const struct cc_bbr_state *b, const struct cc_bbr *p)
{
	cc_u32 longterm = b->inflight_longterm_pkts, headroom;

	if (longterm == CC_BBR_NONE)
		return CC_BBR_NONE;
	headroom = cc_most(1, cc_bbr_part(longterm, p->headroom_milli));
	return longterm > headroom + CC_BBR_MIN_PIPE_PKTS ? longterm - headroom
							  : CC_BBR_MIN_PIPE_PKTS;
}

/* 5.5.1 StartRound() */
static inline void cc_bbr_start_round(struct cc_bbr_state *b)
{
	b->next_round_delivered_pkts = b->delivered_pkts;
}

/* 5.5.1 UpdateRound() */
static inline void cc_bbr_update_round(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	int starts = !cc_is_before(s->prior_delivered_pkts, b->next_round_delivered_pkts);

	cc_bbr_flag(b, CC_BBR_ROUND_START, starts);
	if (!starts)
		return;
	cc_bbr_start_round(b);
	b->round_count++;
	b->rounds_since_probe_up++;
}

/*
 * The program gave little when the segment left, or ProbeRTT held it back (5.3.4.3 MarkConnectionAppLimited(),
 * which not every host lets a law do).
 */
static inline int cc_bbr_is_app_limited(const struct cc_bbr_state *b,
					const struct cc_rate_sample *s)
{
	if (s->flags & CC_RATE_APP_LIMITED)
		return 1;
	return cc_bbr_is(b, CC_BBR_DISCARDS) &&
	       cc_is_before(s->prior_delivered_pkts, b->app_limited_until_pkts);
}

static inline void cc_bbr_discard_samples(struct cc_bbr_state *b, cc_u32 in_flight_pkts)
{
	b->app_limited_until_pkts = b->delivered_pkts + in_flight_pkts;
	cc_bbr_flag(b, CC_BBR_DISCARDS, 1);
}

/*
 * Where acknowledgements come late and together, the largest of the hundreds of samples of a probe is some percent above
 * what the path carries, more than the pacing margin, and a queue grows until the filter has forgotten it. So once the
 * pipe was full a little more counts only at the end of a round. The draft takes every sample.
 */
static inline int cc_bbr_counts(const struct cc_bbr_state *b, cc_u32 bw)
{
	return cc_bbr_is(b, CC_BBR_ROUND_START) || !cc_bbr_is(b, CC_BBR_FULL_BW_REACHED) ||
	       bw > cc_bbr_part(cc_bbr_max_bw(b), CC_BBR_CLEARLY_MORE_MILLI);
}

/* 5.5.5 UpdateMaxBw() */
static inline void cc_bbr_update_max_bw(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	cc_u32 bw = cc_bbr_sampled_bw(s);

	cc_bbr_update_round(b, s);
	if (!bw || (bw < cc_bbr_max_bw(b) && cc_bbr_is_app_limited(b, s)))
		return;
	if (b->phase == CC_BBR_STARTUP && cc_bbr_is(b, CC_BBR_ROUND_START))
		b->max_bw[1] = cc_most(b->max_bw[1], bw);
	if (cc_bbr_counts(b, bw))
		b->max_bw[0] = cc_most(b->max_bw[0], bw);
}

/* What leaves from now on is so much less than the path carries. */
static inline void cc_bbr_slow_begins(struct cc_bbr_state *b, cc_u32 gain_milli)
{
	b->slow_from_pkts = b->delivered_pkts;
	b->slow_gain_milli = gain_milli;
	cc_bbr_flag(b, CC_BBR_IS_SLOW, 1);
}

static inline void cc_bbr_slow_ends(struct cc_bbr_state *b)
{
	if (cc_bbr_is(b, CC_BBR_IS_SLOW))
		b->slow_until_pkts = b->delivered_pkts;
	cc_bbr_flag(b, CC_BBR_IS_SLOW, 0);
}

static inline int cc_bbr_left_slowly(const struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	return b->slow_gain_milli && !cc_is_before(s->prior_delivered_pkts, b->slow_from_pkts) &&
	       (cc_bbr_is(b, CC_BBR_IS_SLOW) ||
		cc_is_before(s->prior_delivered_pkts, b->slow_until_pkts));
}

/*
 * What left more slowly than the path carries arrives as slowly, and a loss in it says nothing of that: without this a
 * flow that loses at random would go on as slowly until the next probe.
 */
static inline cc_u32 cc_bbr_of_path(const struct cc_bbr_state *b, const struct cc_rate_sample *s,
				    cc_u32 measured)
{
	if (!cc_bbr_left_slowly(b, s))
		return measured;
	return cc_bbr_part(measured, 1000000 / b->slow_gain_milli);
}

/* 5.5.10.3 UpdateLatestDeliverySignals() */
static inline void cc_bbr_update_latest(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	int starts = !cc_is_before(s->prior_delivered_pkts, b->loss_round_delivered_pkts);

	b->bw_latest = cc_most(b->bw_latest, cc_bbr_of_path(b, s, cc_bbr_sampled_bw(s)));
	b->inflight_latest_pkts =
		cc_most(b->inflight_latest_pkts, cc_bbr_of_path(b, s, s->sampled_pkts));
	cc_bbr_flag(b, CC_BBR_LOSS_ROUND_START, starts);
	if (starts)
		b->loss_round_delivered_pkts = b->delivered_pkts;
}

/* 5.5.10.3 AdvanceLatestDeliverySignals() */
static inline void cc_bbr_advance_latest(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	if (!cc_bbr_is(b, CC_BBR_LOSS_ROUND_START))
		return;
	b->bw_latest = cc_bbr_of_path(b, s, cc_bbr_sampled_bw(s));
	b->inflight_latest_pkts = cc_bbr_of_path(b, s, s->sampled_pkts);
}

/* 5.5.10.3 ResetCongestionSignals() */
static inline void cc_bbr_reset_signals(struct cc_bbr_state *b)
{
	b->flags &= ~(CC_BBR_LOSS_IN_ROUND | CC_BBR_CE_IN_ROUND);
	b->bw_latest = 0;
	b->inflight_latest_pkts = 0;
}

/* 5.5.10.3 ResetShortTermModel() */
static inline void cc_bbr_reset_shortterm(struct cc_bbr_state *b)
{
	b->bw_shortterm = CC_BBR_NONE;
	b->inflight_shortterm_pkts = CC_BBR_NONE;
}

/* 5.5.10.3 InitLowerBounds() */
static inline void cc_bbr_init_lower_bounds(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (b->bw_shortterm == CC_BBR_NONE)
		b->bw_shortterm = cc_bbr_max_bw(b);
	if (b->inflight_shortterm_pkts == CC_BBR_NONE)
		b->inflight_shortterm_pkts = f->cwnd_pkts;
}

/*
 * 5.5.10.3 LossLowerBounds(). A flow that paces below the bandwidth measures that much less of it; a round that lost
 * X % is to lower the rate by X % (5.3.3.8.3), not by the margin too.
 */
static inline void cc_bbr_loss_lower_bounds(struct cc_bbr_state *b, const struct cc_bbr *p)
{
	cc_u32 measured = cc_bbr_part(b->bw_latest, 1000000 / (1000 - p->pacing_margin_milli));

	measured = cc_most(b->bw_latest, cc_least(measured, b->bw_shortterm));
	b->bw_shortterm = cc_most(measured, cc_bbr_part(b->bw_shortterm, p->beta_milli));
	b->inflight_shortterm_pkts = cc_most(
		b->inflight_latest_pkts, cc_bbr_part(b->inflight_shortterm_pkts, p->beta_milli));
}

/* What was delivered is no measure where nothing was dropped: a queue that marks still delivers all. */
static inline void cc_bbr_ce_lower_bounds(struct cc_bbr_state *b)
{
	b->bw_shortterm = cc_bbr_part(b->bw_shortterm, CC_BBR_ECN_BETA_MILLI);
	b->inflight_shortterm_pkts = cc_bbr_part(b->inflight_shortterm_pkts, CC_BBR_ECN_BETA_MILLI);
}

/* 5.5.10.3 AdaptLowerBoundsFromCongestion() */
static inline void cc_bbr_adapt_lower_bounds(struct cc_rate_flow *f, const struct cc_bbr *p)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (cc_bbr_is_probing_bw(b) || !cc_bbr_max_bw(b) ||
	    !(b->flags & (CC_BBR_LOSS_IN_ROUND | CC_BBR_CE_IN_ROUND)))
		return;
	cc_bbr_init_lower_bounds(f);
	if (cc_bbr_is(b, CC_BBR_LOSS_IN_ROUND))
		cc_bbr_loss_lower_bounds(b, p);
	else
		cc_bbr_ce_lower_bounds(b);
}

/* 5.5.10.3 UpdateCongestionSignals() */
static inline void cc_bbr_update_signals(struct cc_rate_flow *f, const struct cc_bbr *p,
					 const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	cc_bbr_update_max_bw(b, s);
	if (!cc_bbr_is(b, CC_BBR_LOSS_ROUND_START))
		return;
	cc_bbr_adapt_lower_bounds(f, p);
	b->flags &= ~(CC_BBR_LOSS_IN_ROUND | CC_BBR_CE_IN_ROUND);
}

/* 5.5.9: the largest of these rounds and those before is the filter's. */
static inline void cc_bbr_note_extra_acked(struct cc_bbr_state *b, cc_u32 extra_pkts)
{
	cc_u32 rounds = cc_bbr_is(b, CC_BBR_FULL_BW_REACHED) ? CC_BBR_EXTRA_ACKED_ROUNDS : 1;

	if (cc_bbr_is(b, CC_BBR_ROUND_START) && ++b->extra_acked_rounds >= rounds) {
		b->extra_acked_rounds = 0;
		b->extra_acked_pkts[1] = b->extra_acked_pkts[0];
		b->extra_acked_pkts[0] = 0;
	}
	b->extra_acked_pkts[0] = cc_most(b->extra_acked_pkts[0], extra_pkts);
}

/* 5.5.9 UpdateACKAggregation() */
static inline void cc_bbr_update_aggregation(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u64 interval_us = b->now_us - b->extra_acked_from_us;
	cc_u64 expected = CC_BBR_NONE;

	if (interval_us <= CC_BBR_NONE)
		expected = (b->bw * interval_us) >> CC_BBR_BW_BITS;
	if (b->extra_acked_delivered_pkts <= expected) {
		b->extra_acked_delivered_pkts = 0;
		b->extra_acked_from_us = b->now_us;
		expected = 0;
	}
	b->extra_acked_delivered_pkts += s->acked_pkts;
	cc_bbr_note_extra_acked(
		b, cc_least(b->extra_acked_delivered_pkts - (cc_u32)expected, f->cwnd_pkts));
}

/* ProbeRTT lasts round trips: where these are long, one each five seconds would cost more than elsewhere. */
static inline cc_u64 cc_bbr_probe_rtt_every_us(const struct cc_bbr_state *b)
{
	cc_u64 rounds_us = (cc_u64)b->min_rtt_us * CC_BBR_PROBE_RTT_ROUNDS;

	if (b->min_rtt_us == CC_BBR_NONE || rounds_us < CC_BBR_PROBE_RTT_EVERY_US)
		return CC_BBR_PROBE_RTT_EVERY_US;
	return rounds_us;
}

/* 5.3.4.3 UpdateMinRTT() */
static inline void cc_bbr_update_min_rtt(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	int expired = b->now_us > b->probe_rtt_min_at_us + cc_bbr_probe_rtt_every_us(b);

	cc_bbr_flag(b, CC_BBR_PROBE_RTT_EXPIRED, expired);
	if (s->rtt_us && (s->rtt_us < b->probe_rtt_min_us || expired)) {
		b->probe_rtt_min_us = s->rtt_us;
		b->probe_rtt_min_at_us = b->now_us;
	}
	if (b->probe_rtt_min_us < b->min_rtt_us ||
	    b->now_us > b->min_rtt_at_us + CC_BBR_MIN_RTT_FILTER_US) {
		b->min_rtt_us = b->probe_rtt_min_us;
		b->min_rtt_at_us = b->probe_rtt_min_at_us;
	}
}

/* 5.3.1.2 ResetFullBW() */
static inline void cc_bbr_reset_full_bw(struct cc_bbr_state *b)
{
	b->full_bw = 0;
	b->full_bw_count = 0;
	cc_bbr_flag(b, CC_BBR_FULL_BW_NOW, 0);
}

/* 5.3.1.2 CheckFullBWReached() */
static inline void cc_bbr_check_full_bw(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	cc_u32 bw = cc_bbr_sampled_bw(s);

	if (cc_bbr_is(b, CC_BBR_FULL_BW_NOW) || !cc_bbr_is(b, CC_BBR_ROUND_START) ||
	    cc_bbr_is_app_limited(b, s))
		return;
	if (bw >= cc_bbr_part(b->full_bw, 1250)) {
		cc_bbr_reset_full_bw(b);
		b->full_bw = bw;
		return;
	}
	if (++b->full_bw_count < CC_BBR_FULL_ROUNDS)
		return;
	b->flags |= CC_BBR_FULL_BW_NOW | CC_BBR_FULL_BW_REACHED;
	if (b->phase == CC_BBR_STARTUP && b->max_bw[1])
		b->max_bw[0] = b->max_bw[1];
}

/* 5.5.10.2 IsInflightTooHigh(); an echo of congestion says so too (3.7). */
static inline int cc_bbr_is_too_high(const struct cc_bbr_state *b, const struct cc_bbr *p,
				     const struct cc_rate_sample *s)
{
	cc_u32 lost = s->lost_since_sent_pkts;

	if (cc_bbr_is(b, CC_BBR_CE) || (lost && (s->flags & CC_RATE_NO_SACK)))
		return 1;
	return (cc_u64)lost * 1000 > (cc_u64)s->tx_in_flight_pkts * p->loss_thresh_milli;
}

/*
 * 5.5.10.2 InflightAtLoss(), with all that this acknowledgement found lost in the place of the one segment: a law is
 * not called for each.
 */
static inline cc_u32 cc_bbr_inflight_at_loss_pkts(const struct cc_bbr *p,
						  const struct cc_rate_sample *s)
{
	cc_u32 size = cc_least(s->newly_lost_pkts, s->tx_in_flight_pkts);
	cc_u32 prior_pkts = s->tx_in_flight_pkts - size;
	cc_u32 prior_lost = s->lost_since_sent_pkts - cc_least(size, s->lost_since_sent_pkts);
	cc_u64 allowed = (cc_u64)prior_pkts * p->loss_thresh_milli;
	cc_u64 lost = (cc_u64)prior_lost * 1000;

	if (!size || lost >= allowed)
		return prior_pkts;
	return prior_pkts +
	       cc_least((cc_u32)((allowed - lost) / (1000 - p->loss_thresh_milli)), size);
}

#endif
