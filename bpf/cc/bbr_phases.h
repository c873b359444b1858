/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR's state machine: Startup, Drain, ProbeBW (Down, Cruise, Refill, Up), ProbeRTT. Sections are those of
 * draft-ietf-ccwg-bbr-06. Start at cc_bbr_update_phase().
 */
#ifndef FATPATH_CC_BBR_PHASES_H
#define FATPATH_CC_BBR_PHASES_H

#include "bbr_model.h"

/* 5.6.1: gains in thousandths */
static inline cc_u32 cc_bbr_pacing_gain_milli(const struct cc_bbr_state *b)
{
	switch (b->phase) {
	case CC_BBR_STARTUP:
		return 2773;
	case CC_BBR_DRAIN:
		return 500;
	case CC_BBR_PROBE_BW_DOWN:
		return CC_BBR_DOWN_GAIN_MILLI;
	case CC_BBR_PROBE_BW_UP:
		return 1250;
	default:
		return 1000;
	}
}

static inline cc_u32 cc_bbr_cwnd_gain_milli(const struct cc_bbr_state *b)
{
	switch (b->phase) {
	case CC_BBR_PROBE_BW_UP:
		return 2250;
	case CC_BBR_PROBE_RTT:
		return CC_BBR_PROBE_RTT_GAIN_MILLI;
	default:
		return 2000;
	}
}

/* Mixes what differs from flow to flow and from probe to probe: the same in the kernel and in a replay. */
static inline cc_u32 cc_bbr_random(const struct cc_bbr_state *b)
{
	cc_u64 x = (b->now_us ^ (cc_u64)b->delivered_pkts << 20) * 0x9e3779b97f4a7c15ull;

	return (cc_u32)((x ^ x >> 29) * 0xbf58476d1ce4e5b9ull >> 32);
}

/* 5.3.3.8.3 PickProbeWait(): two to three seconds */
static inline void cc_bbr_pick_probe_wait(struct cc_bbr_state *b)
{
	cc_u32 random = cc_bbr_random(b);

	b->rounds_since_probe_up = random & 1;
	b->bw_probe_wait_us = 2000000 + (cc_u32)((cc_u64)(random >> 1) * 1000000 >> 31);
}

static inline void cc_bbr_begin_cycle(struct cc_bbr_state *b)
{
	cc_bbr_reset_signals(b);
	b->probe_up_acked_per_inc_pkts = CC_BBR_NONE;
	cc_bbr_pick_probe_wait(b);
	b->cycle_at_us = b->now_us;
	b->ack_phase = CC_BBR_ACKS_PROBE_STOPPING;
	cc_bbr_start_round(b);
}

/* 5.3.3.9 StartProbeBW_DOWN() */
static inline void cc_bbr_start_down(struct cc_bbr_state *b)
{
	cc_bbr_begin_cycle(b);
	cc_bbr_slow_begins(b, CC_BBR_DOWN_GAIN_MILLI);
	b->phase = CC_BBR_PROBE_BW_DOWN;
}

static inline void cc_bbr_start_cruise(struct cc_bbr_state *b)
{
	cc_bbr_slow_ends(b);
	b->phase = CC_BBR_PROBE_BW_CRUISE;
}

/* 5.3.3.9 StartProbeBW_REFILL() */
static inline void cc_bbr_start_refill(struct cc_bbr_state *b)
{
	cc_bbr_reset_shortterm(b);
	b->bw_probe_up_rounds = 0;
	b->bw_probe_up_acked_pkts = 0;
	cc_bbr_flag(b, CC_BBR_PREV_PRECAUTIONARY, 0);
	b->ack_phase = CC_BBR_ACKS_REFILLING;
	cc_bbr_start_round(b);
	cc_bbr_slow_ends(b);
	b->phase = CC_BBR_PROBE_BW_REFILL;
}

/* 5.3.3.9 RaiseInflightLongtermSlope() */
static inline void cc_bbr_raise_slope(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	b->probe_up_acked_per_inc_pkts = cc_most(f->cwnd_pkts >> (b->bw_probe_up_rounds & 31), 1);
	b->bw_probe_up_rounds = (cc_u8)cc_least(b->bw_probe_up_rounds + 1u, 30);
}

/* 5.3.3.9 StartProbeBW_UP() */
static inline void cc_bbr_start_up(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	b->ack_phase = CC_BBR_ACKS_PROBE_STARTING;
	cc_bbr_start_round(b);
	cc_bbr_reset_full_bw(b);
	b->full_bw = cc_bbr_sampled_bw(s);
	b->probe_rtt_us = s->rtt_us;
	b->probe_queued_pkts = 0;
	b->phase = CC_BBR_PROBE_BW_UP;
	cc_bbr_raise_slope(f);
}

/* 5.3.1.3: enough losses, for a whole round trip, and spread over it */
static inline int cc_bbr_is_startup_lossy(const struct cc_bbr_state *b, const struct cc_bbr *p,
					  const struct cc_rate_sample *s)
{
	if (!cc_bbr_is(b, CC_BBR_LOSS_ROUND_START) || !cc_bbr_is_too_high(b, p, s))
		return 0;
	if ((s->flags & CC_RATE_NO_SACK) || cc_bbr_is(b, CC_BBR_CE))
		return 1;
	return (s->flags & CC_RATE_RECOVERS) && b->losses_in_round >= CC_BBR_STARTUP_FULL_LOSSES;
}

/* 5.3.1.3 CheckStartupHighLoss(). A range that was lost is taken for an acknowledgement that found losses. */
static inline void cc_bbr_check_startup_loss(struct cc_bbr_state *b, const struct cc_bbr *p,
					     const struct cc_rate_sample *s)
{
	if (s->newly_lost_pkts && b->losses_in_round < 255)
		b->losses_in_round++;
	if (b->phase == CC_BBR_STARTUP && cc_bbr_is_startup_lossy(b, p, s)) {
		b->undo_phase = CC_BBR_STARTUP;
		cc_bbr_flag(b, CC_BBR_FULL_BW_REACHED, 1);
		b->inflight_longterm_pkts =
			cc_most(cc_bbr_bdp_pkts(b, b->bw), b->inflight_latest_pkts);
	}
	if (cc_bbr_is(b, CC_BBR_LOSS_ROUND_START))
		b->losses_in_round = 0;
}

/* 5.3.1.1 CheckStartupDone(), 5.3.2 EnterDrain() */
static inline void cc_bbr_check_startup_done(struct cc_bbr_state *b)
{
	if (b->phase != CC_BBR_STARTUP || !cc_bbr_is(b, CC_BBR_FULL_BW_REACHED))
		return;
	b->phase = CC_BBR_DRAIN;
	b->drain_start_round = b->round_count;
}

/* 5.3.2 CheckDrainDone() */
static inline void cc_bbr_check_drain_done(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (b->phase != CC_BBR_DRAIN)
		return;
	if (s->in_flight_pkts <= cc_bbr_inflight_pkts(f, b->bw, s->mss_bytes) ||
	    b->round_count - b->drain_start_round > CC_BBR_DRAIN_ROUNDS)
		cc_bbr_start_down(b);
}

/* 5.3.3.8.3 IsTimeToProbeBW() */
static inline int cc_bbr_is_time_to_probe(struct cc_rate_flow *f, const struct cc_bbr *p)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	return b->now_us > b->cycle_at_us + b->bw_probe_wait_us ||
	       b->rounds_since_probe_up >= cc_least(cc_bbr_target_pkts(f), p->probe_rounds);
}

/* 5.3.3.9 IsTimeToCruise() */
static inline int cc_bbr_is_time_to_cruise(struct cc_rate_flow *f, const struct cc_bbr *p,
					   const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	return s->in_flight_pkts <= cc_bbr_headroom_pkts(b, p) &&
	       s->in_flight_pkts <= cc_bbr_inflight_pkts(f, cc_bbr_max_bw(b), s->mss_bytes);
}

static inline int cc_bbr_fills_longterm(const struct cc_rate_flow *f, const struct cc_bbr_state *b,
					const struct cc_rate_sample *s)
{
	return (s->flags & CC_RATE_CWND_LIMITED) && f->cwnd_pkts >= b->inflight_longterm_pkts;
}

/*
 * What the probe adds waits in a queue: for an eighth of a round trip, what arrived took longer than when it began,
 * by an eighth of the least round trip, and no faster.
 */
static inline int cc_bbr_makes_queue(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	cc_u32 queued_us = b->min_rtt_us / CC_BBR_QUEUE_PART;

	if (b->ack_phase != CC_BBR_ACKS_PROBE_FEEDBACK || !s->rtt_us || !b->probe_rtt_us)
		return 0;
	if (s->rtt_us < b->probe_rtt_us + queued_us ||
	    cc_bbr_sampled_bw(s) >= cc_bbr_part(b->full_bw, CC_BBR_PROBE_GROWN_MILLI))
		b->probe_queued_pkts = 0;
	else
		b->probe_queued_pkts += s->acked_pkts;
	return b->probe_queued_pkts > cc_bbr_bdp_pkts(b, b->bw) / CC_BBR_QUEUE_PART;
}

/* 5.3.3.9 IsTimeToGoDown() */
static inline int cc_bbr_is_time_to_go_down(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (cc_bbr_is(b, CC_BBR_PREV_TOO_HIGH) && s->in_flight_pkts >= b->inflight_longterm_pkts) {
		cc_bbr_flag(b, CC_BBR_PREV_PRECAUTIONARY, 1);
		return 1;
	}
	if (!cc_bbr_fills_longterm(f, b, s))
		return cc_bbr_is(b, CC_BBR_FULL_BW_NOW) || cc_bbr_makes_queue(b, s);
	cc_bbr_reset_full_bw(b);
	b->full_bw = cc_bbr_sampled_bw(s);
	return 0;
}

/* 5.3.3.9 ProbeInflightLongtermUpward() */
static inline void cc_bbr_probe_upward(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u32 per_inc = cc_most(b->probe_up_acked_per_inc_pkts, 1), delta;

	if (!cc_bbr_fills_longterm(f, b, s))
		return;
	b->bw_probe_up_acked_pkts += s->acked_pkts;
	delta = b->bw_probe_up_acked_pkts / per_inc;
	b->bw_probe_up_acked_pkts -= delta * per_inc;
	if (b->inflight_longterm_pkts < CC_INFINITE_SSTHRESH)
		b->inflight_longterm_pkts += cc_least(delta, CC_INFINITE_SSTHRESH);
	if (cc_bbr_is(b, CC_BBR_ROUND_START))
		cc_bbr_raise_slope(f);
}

/* 5.5.10.2 HandleInflightTooHigh(). Once for each probe. */
static inline void cc_bbr_handle_too_high(struct cc_rate_flow *f, const struct cc_bbr *p,
					  const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	b->flags |= CC_BBR_PREV_TOO_HIGH;
	cc_bbr_flag(b, CC_BBR_PROBE_SAMPLE, 0);
	if (!cc_bbr_is_app_limited(b, s))
		b->inflight_longterm_pkts =
			cc_most(cc_bbr_inflight_at_loss_pkts(p, s),
				cc_bbr_part(cc_bbr_target_pkts(f), p->beta_milli));
	if (b->phase == CC_BBR_PROBE_BW_UP) {
		b->undo_phase = CC_BBR_PROBE_BW_UP;
		cc_bbr_start_down(b);
	}
}

/* 5.3.3.9 AdaptLongTermModel(), what follows the end of a probe. 1 = it decided on the phase. */
static inline int cc_bbr_follow_probe(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	if (!cc_bbr_is(b, CC_BBR_ROUND_START))
		return 0;
	if (b->ack_phase == CC_BBR_ACKS_PROBE_STARTING)
		b->ack_phase = CC_BBR_ACKS_PROBE_FEEDBACK;
	if (b->ack_phase != CC_BBR_ACKS_PROBE_STOPPING)
		return 0;
	cc_bbr_flag(b, CC_BBR_PROBE_SAMPLE, 0);
	b->ack_phase = CC_BBR_ACKS_INIT;
	if (!cc_bbr_is_in_probe_bw(b))
		return 0;
	if (!cc_bbr_is_app_limited(b, s))
		cc_bbr_advance_max_bw(b);
	if (!cc_bbr_is(b, CC_BBR_PREV_PRECAUTIONARY) || cc_bbr_is(b, CC_BBR_PREV_TOO_HIGH))
		return 0;
	cc_bbr_start_refill(b);
	return 1;
}

/*
 * 5.3.3.9 AdaptLongTermModel(), with 5.5.10.2 HandleLostPacket(): once for what an acknowledgement found lost, as no
 * law is called for each segment.
 */
static inline int cc_bbr_adapt_longterm(struct cc_rate_flow *f, const struct cc_bbr *p,
					const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (cc_bbr_follow_probe(b, s))
		return 1;
	if (cc_bbr_is_too_high(b, p, s)) {
		if (cc_bbr_is(b, CC_BBR_PROBE_SAMPLE))
			cc_bbr_handle_too_high(f, p, s);
		return 0;
	}
	if (b->inflight_longterm_pkts == CC_BBR_NONE)
		return 0;
	b->inflight_longterm_pkts = cc_most(b->inflight_longterm_pkts, s->tx_in_flight_pkts);
	if (b->phase == CC_BBR_PROBE_BW_UP)
		cc_bbr_probe_upward(f, s);
	return 0;
}

/* 5.3.3.9 UpdateProbeBWCyclePhase() */
static inline void cc_bbr_update_phase(struct cc_rate_flow *f, const struct cc_bbr *p,
				       const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (!cc_bbr_is(b, CC_BBR_FULL_BW_REACHED) || cc_bbr_adapt_longterm(f, p, s))
		return;
	switch (b->phase) {
	case CC_BBR_PROBE_BW_DOWN:
	case CC_BBR_PROBE_BW_CRUISE:
		if (cc_bbr_is_time_to_probe(f, p))
			cc_bbr_start_refill(b);
		else if (b->phase == CC_BBR_PROBE_BW_DOWN && cc_bbr_is_time_to_cruise(f, p, s))
			cc_bbr_start_cruise(b);
		break;
	case CC_BBR_PROBE_BW_REFILL:
		if (!cc_bbr_is(b, CC_BBR_ROUND_START))
			break;
		cc_bbr_flag(b, CC_BBR_PROBE_SAMPLE, 1);
		cc_bbr_start_up(f, s);
		break;
	case CC_BBR_PROBE_BW_UP:
		if (!cc_bbr_is_time_to_go_down(f, s))
			break;
		cc_bbr_flag(b, CC_BBR_PREV_TOO_HIGH, 0);
		cc_bbr_start_down(b);
		break;
	default:
		break;
	}
}

/* 5.6.4.5 ProbeRTTCwnd() */
static inline cc_u32 cc_bbr_probe_rtt_cwnd_pkts(const struct cc_bbr_state *b)
{
	cc_u32 pkts = cc_bbr_part(cc_bbr_bdp_pkts(b, b->bw), cc_bbr_cwnd_gain_milli(b));

	return cc_most(pkts, CC_BBR_MIN_PIPE_PKTS);
}

/* 5.6.4.4 RestoreCwnd() */
static inline void cc_bbr_restore_cwnd(struct cc_rate_flow *f)
{
	f->cwnd_pkts = cc_most(f->cwnd_pkts, cc_bbr_of(f)->prior_cwnd_pkts);
}

/* 5.3.4.3 CheckProbeRTTDone(), 5.3.4.4 ExitProbeRTT() */
static inline void cc_bbr_check_probe_rtt_done(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (!b->probe_rtt_done_at_us || b->now_us <= b->probe_rtt_done_at_us)
		return;
	b->probe_rtt_min_at_us = b->now_us;
	cc_bbr_restore_cwnd(f);
	cc_bbr_reset_shortterm(b);
	if (!cc_bbr_is(b, CC_BBR_FULL_BW_REACHED)) {
		cc_bbr_slow_ends(b);
		b->phase = CC_BBR_STARTUP;
		return;
	}
	cc_bbr_begin_cycle(b);
	cc_bbr_start_cruise(b);
}

/* 5.3.4.3 HandleProbeRTT() */
static inline void cc_bbr_handle_probe_rtt(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	cc_bbr_discard_samples(b, s->in_flight_pkts);
	if (!b->probe_rtt_done_at_us) {
		if (s->in_flight_pkts > cc_bbr_probe_rtt_cwnd_pkts(b))
			return;
		b->probe_rtt_done_at_us = b->now_us + CC_BBR_PROBE_RTT_US;
		cc_bbr_flag(b, CC_BBR_PROBE_RTT_ROUND_DONE, 0);
		cc_bbr_start_round(b);
		return;
	}
	if (cc_bbr_is(b, CC_BBR_ROUND_START))
		cc_bbr_flag(b, CC_BBR_PROBE_RTT_ROUND_DONE, 1);
	if (cc_bbr_is(b, CC_BBR_PROBE_RTT_ROUND_DONE))
		cc_bbr_check_probe_rtt_done(f);
}

/* 5.6.4.4 SaveCwnd(); in recovery or ProbeRTT the window is not what the path took. */
static inline void cc_bbr_save_cwnd(struct cc_rate_flow *f, int recovers)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	int is_good = !recovers && b->phase != CC_BBR_PROBE_RTT;

	b->prior_cwnd_pkts = is_good ? f->cwnd_pkts : cc_most(b->prior_cwnd_pkts, f->cwnd_pkts);
}

/* 5.3.4.3 CheckProbeRTT() */
static inline void cc_bbr_check_probe_rtt(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (b->phase != CC_BBR_PROBE_RTT && cc_bbr_is(b, CC_BBR_PROBE_RTT_EXPIRED) &&
	    !cc_bbr_is(b, CC_BBR_IDLE_RESTART)) {
		cc_bbr_save_cwnd(f, !!(s->flags & (CC_RATE_RECOVERS | CC_RATE_TIMED_OUT)));
		b->phase = CC_BBR_PROBE_RTT;
		b->probe_rtt_done_at_us = 0;
		b->ack_phase = CC_BBR_ACKS_PROBE_STOPPING;
		cc_bbr_start_round(b);
		cc_bbr_slow_begins(b, CC_BBR_PROBE_RTT_GAIN_MILLI);
	}
	if (b->phase == CC_BBR_PROBE_RTT)
		cc_bbr_handle_probe_rtt(f, s);
	if (s->acked_pkts)
		cc_bbr_flag(b, CC_BBR_IDLE_RESTART, 0);
}

#endif
