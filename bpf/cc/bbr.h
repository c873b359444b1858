/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR version 3 (draft-ietf-ccwg-bbr-06): the window and the pacing rate follow from a model of the path
 * (bbr_model.h) and from what is being tried (bbr_phases.h). docs/bbr.md says what differs from the draft.
 *
 * Start at cc_bbr_acked().
 */
#ifndef FATPATH_CC_BBR_H
#define FATPATH_CC_BBR_H

#include "bbr_phases.h"

/* 5.6.2: `bw` x gain, less the margin, bytes a second */
static inline cc_u64 cc_bbr_rate(const struct cc_bbr *p, cc_u32 bw, cc_u32 gain_milli,
				 cc_u32 mss_bytes)
{
	cc_u32 milli = gain_milli * (1000 - p->pacing_margin_milli) / 1000;

	return cc_scaled((cc_u64)bw * mss_bytes, milli * 1000, 1u << CC_BBR_BW_BITS);
}

/* 5.6.2 SetPacingRateWithGain(). Without a bandwidth, what was set before stays. */
static inline void cc_bbr_set_pacing(struct cc_rate_flow *f, const struct cc_bbr *p,
				     cc_u32 gain_milli, cc_u32 mss_bytes)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u64 rate = cc_bbr_rate(p, b->bw, gain_milli, mss_bytes);

	if (rate && (cc_bbr_is(b, CC_BBR_FULL_BW_REACHED) || rate > f->pacing_bytes_per_s))
		f->pacing_bytes_per_s = rate;
}

/* 5.6.2 InitPacingRate(), again when the first round trip was measured */
static inline void cc_bbr_init_pacing(struct cc_rate_flow *f, cc_u32 srtt_us, cc_u32 mss_bytes)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u64 window_bytes = (cc_u64)cc_most(f->cwnd_pkts, 1) * cc_most(mss_bytes, 1);
	cc_u32 rtt_us = srtt_us ? srtt_us : CC_BBR_NOMINAL_RTT_US;

	if (cc_bbr_is(b, CC_BBR_HAS_RTT))
		return;
	cc_bbr_flag(b, CC_BBR_HAS_RTT, !!srtt_us);
	f->pacing_bytes_per_s = cc_scaled(window_bytes, cc_bbr_pacing_gain_milli(b) * 1000, rtt_us);
	if (!f->pacing_bytes_per_s)
		f->pacing_bytes_per_s = 1;
}

/* 5.6.4.2 UpdateMaxInflight() */
static inline cc_u32 cc_bbr_max_inflight_pkts(struct cc_rate_flow *f,
					      const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u32 extra = cc_most(b->extra_acked_pkts[0], b->extra_acked_pkts[1]);
	cc_u32 pkts = cc_bbr_part(cc_bbr_bdp_pkts(b, b->bw), cc_bbr_cwnd_gain_milli(b));

	pkts = cc_least(pkts, CC_INFINITE_SSTHRESH) + cc_least(extra, CC_INFINITE_SSTHRESH / 2);
	return cc_bbr_quantized(f, pkts, s->mss_bytes);
}

/* 5.6.4.7 BoundCwndForModel() */
static inline cc_u32 cc_bbr_cap_pkts(const struct cc_bbr_state *b, const struct cc_bbr *p)
{
	cc_u32 cap = CC_BBR_NONE;

	if (b->phase == CC_BBR_PROBE_RTT || b->phase == CC_BBR_PROBE_BW_CRUISE)
		cap = cc_bbr_headroom_pkts(b, p);
	else if (cc_bbr_is_in_probe_bw(b))
		cap = b->inflight_longterm_pkts;
	return cc_most(cc_least(cap, b->inflight_shortterm_pkts), CC_BBR_MIN_PIPE_PKTS);
}

/* 5.6.4.6 SetCwnd() */
static inline void cc_bbr_set_cwnd(struct cc_rate_flow *f, const struct cc_bbr *p,
				   const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u32 most = cc_bbr_max_inflight_pkts(f, s), cwnd = f->cwnd_pkts;
	cc_u32 grown = cwnd + cc_least(s->acked_pkts,
				       CC_INFINITE_SSTHRESH - cc_least(cwnd, CC_INFINITE_SSTHRESH));

	if (cc_bbr_is(b, CC_BBR_FULL_BW_REACHED))
		cwnd = cc_least(grown, most);
	else if (cwnd < most || b->delivered_pkts < b->initial_window_pkts)
		cwnd = grown;
	cwnd = cc_most(cwnd, CC_BBR_MIN_PIPE_PKTS);
	if (b->phase == CC_BBR_PROBE_RTT)
		cwnd = cc_least(cwnd, cc_bbr_probe_rtt_cwnd_pkts(b));
	cwnd = cc_least(cwnd, cc_bbr_cap_pkts(b, p));
	f->cwnd_pkts = cc_least(cwnd, cc_most(f->clamp_pkts, 1));
}

/* 5.5.11.1 SaveStateUponLoss() */
static inline void cc_bbr_save_state(struct cc_bbr_state *b)
{
	b->undo_phase = CC_BBR_NO_PHASE;
	b->undo_bw_shortterm = b->bw_shortterm;
	b->undo_inflight_shortterm_pkts = b->inflight_shortterm_pkts;
	b->undo_inflight_longterm_pkts = b->inflight_longterm_pkts;
}

/* 5.5.10.2 NoteLoss(); an echo of congestion begins a round likewise. */
static inline void cc_bbr_note_loss(struct cc_bbr_state *b, const struct cc_rate_sample *s)
{
	int is_marked = s->ce_pkts != b->ce_pkts;

	b->ce_pkts = s->ce_pkts;
	if (!s->newly_lost_pkts && !is_marked)
		return;
	if (!(b->flags & (CC_BBR_LOSS_IN_ROUND | CC_BBR_CE_IN_ROUND)))
		b->loss_round_delivered_pkts = b->delivered_pkts;
	if (s->newly_lost_pkts)
		cc_bbr_flag(b, CC_BBR_LOSS_IN_ROUND, 1);
	if (is_marked)
		b->flags |= CC_BBR_CE_IN_ROUND | CC_BBR_CE;
}

/* 5.6.4.4: recovery is over. */
static inline void cc_bbr_follow_recovery(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	int recovers = !!(s->flags & (CC_RATE_RECOVERS | CC_RATE_TIMED_OUT));

	if (!recovers && cc_bbr_is(b, CC_BBR_RECOVERED))
		cc_bbr_restore_cwnd(f);
	cc_bbr_flag(b, CC_BBR_RECOVERED, recovers);
}

/* 5.2.3 UpdateModelAndState(), what needs a sample */
static inline void cc_bbr_learn(struct cc_rate_flow *f, const struct cc_bbr *p,
				const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	cc_bbr_update_latest(b, s);
	cc_bbr_update_signals(f, p, s);
	cc_bbr_update_aggregation(f, s);
	cc_bbr_check_full_bw(b, s);
	cc_bbr_check_startup_loss(b, p, s);
	cc_bbr_check_startup_done(b);
	cc_bbr_check_drain_done(f, s);
	cc_bbr_update_phase(f, p, s);
}

/*
 * The flow has sent nothing, and the path is known to carry `rate_bps`, bits of data a second: it starts at that rate, with
 * the window that this needs, where its own start would be slower (RFC 9959). That holds until most of the window was
 * in flight; if it is not within some round trips, or a loss or a pause comes first, cc_bbr_start_ends().
 */
static inline void cc_bbr_start_at(struct cc_rate_flow *f, const struct cc_rate_sample *s,
				   cc_u64 rate_bps)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u32 target;

	if (!s->srtt_us || !s->mss_bytes || rate_bps / 8 <= f->pacing_bytes_per_s)
		return;
	target = cc_initial_target_pkts(rate_bps, s->srtt_us, s->mss_bytes);
	b->start_until_us = s->now_us + (cc_u64)CC_RESUME_ROUND_TRIPS * s->srtt_us;
	b->rate_before_start = f->pacing_bytes_per_s;
	b->start_tried_pkts = 0;
	cc_bbr_flag(b, CC_BBR_STARTS_AT_RATE, 1);
	f->cwnd_pkts = cc_most(f->cwnd_pkts, cc_least(target, f->clamp_pkts));
	f->pacing_bytes_per_s = rate_bps / 8;
}

/* What its window was brings; a flow that has sent nothing yet has its share beside others (hystart.h), where that is more. */
static inline cc_u64 cc_bbr_pkts_per_s_beside(const struct cc_rate_flow *f,
					      const struct cc_rate_sample *s,
					      const struct cc_known_path *known)
{
	cc_u64 share_pkts = known->bdp_pkts / CC_SHARE_BESIDE_OTHERS;
	cc_u64 share_pkts_per_s = share_pkts * 1000000 / known->base_rtt_us;
	cc_u64 own_pkts_per_s = f->cwnd_pkts * 1000000ull / s->srtt_us;

	if (s->flags & CC_RATE_HAD_LAW || own_pkts_per_s > share_pkts_per_s)
		return own_pkts_per_s;
	return share_pkts_per_s;
}

/*
 * No Startup, which would double what the flow sends until others lose: its bandwidth is taken for found. What is in flight is by
 * the base RTT: by the handshake's it would be the larger the longer their queue.
 */
static inline void cc_bbr_start_beside(struct cc_rate_flow *f, const struct cc_rate_sample *s,
				       const struct cc_known_path *known)
{
	cc_u64 pkts_per_s = cc_bbr_pkts_per_s_beside(f, s, known);
	struct cc_bbr_state *b = cc_bbr_of(f);

	b->bw = cc_bbr_bw_of(pkts_per_s);
	b->max_bw[0] = b->bw;
	b->min_rtt_us = known->base_rtt_us;
	b->probe_rtt_min_us = known->base_rtt_us;
	cc_bbr_flag(b, CC_BBR_FULL_BW_REACHED, 1);
	cc_bbr_start_down(b);
	f->cwnd_pkts =
		cc_most(f->cwnd_pkts, cc_least(2 * cc_bbr_bdp_pkts(b, b->bw), f->clamp_pkts));
	f->pacing_bytes_per_s = pkts_per_s * s->mss_bytes;
}

/* The handshake met a queue, so others fill the path; where the flow had another law, they may. */
static inline int cc_bbr_makes_way(struct cc_rate_flow *f, const struct cc_rate_sample *s,
				   const struct cc_known_path *known)
{
	if (!known->bdp_pkts || !known->base_rtt_us || !s->srtt_us || !s->mss_bytes)
		return 0;
	if (!(s->flags & CC_RATE_HAD_LAW) && !cc_hystart_has_risen(s->srtt_us, known->base_rtt_us))
		return 0;
	cc_bbr_start_beside(f, s, known);
	return 1;
}

/* The window is what was tried, and the rate the law's own, which what was measured raises. */
static inline void cc_bbr_start_ends(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	cc_u32 tried = cc_most(b->initial_window_pkts, b->start_tried_pkts);

	if (!cc_bbr_is(b, CC_BBR_STARTS_AT_RATE))
		return;
	cc_bbr_flag(b, CC_BBR_STARTS_AT_RATE, 0);
	f->cwnd_pkts = cc_least(f->cwnd_pkts, tried);
	f->pacing_bytes_per_s = b->rate_before_start;
}

static inline void cc_bbr_check_start(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (!cc_bbr_is(b, CC_BBR_STARTS_AT_RATE))
		return;
	b->start_tried_pkts = cc_most(b->start_tried_pkts, s->prior_in_flight_pkts);
	if (b->start_tried_pkts >= f->cwnd_pkts - f->cwnd_pkts / 4)
		cc_bbr_flag(b, CC_BBR_STARTS_AT_RATE, 0);
	else if (b->now_us >= b->start_until_us)
		cc_bbr_start_ends(f);
}

/* 5.2.3 UpdateOnACK() */
static inline void cc_bbr_acked(struct cc_rate_flow *f, const struct cc_bbr *p,
				const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);
	int has_sample = s->interval_us && s->acked_pkts;

	b->now_us = s->now_us;
	b->delivered_pkts = s->delivered_pkts;
	cc_bbr_check_start(f, s);
	cc_bbr_follow_recovery(f, s);
	b->flags &= ~(CC_BBR_ROUND_START | CC_BBR_LOSS_ROUND_START | CC_BBR_CE);
	cc_bbr_note_loss(b, s);
	if (has_sample)
		cc_bbr_learn(f, p, s);
	cc_bbr_update_min_rtt(b, s);
	cc_bbr_check_probe_rtt(f, s);
	if (has_sample)
		cc_bbr_advance_latest(b, s);
	b->bw = cc_least(cc_bbr_max_bw(b), b->bw_shortterm);
	cc_bbr_init_pacing(f, s->srtt_us, s->mss_bytes);
	cc_bbr_set_pacing(f, p, cc_bbr_pacing_gain_milli(b), s->mss_bytes);
	cc_bbr_set_cwnd(f, p, s);
}

/* 5.2.1 OnInit() */
static inline void cc_bbr_begin(struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	b->now_us = s->now_us;
	b->delivered_pkts = s->delivered_pkts;
	b->initial_window_pkts = f->cwnd_pkts;
	b->min_rtt_us = s->srtt_us ? s->srtt_us : CC_BBR_NONE;
	b->min_rtt_at_us = s->now_us;
	b->probe_rtt_min_us = b->min_rtt_us;
	b->probe_rtt_min_at_us = s->now_us;
	b->extra_acked_from_us = s->now_us;
	b->inflight_longterm_pkts = CC_BBR_NONE;
	b->probe_up_acked_per_inc_pkts = CC_BBR_NONE;
	b->undo_phase = CC_BBR_NO_PHASE;
	b->ce_pkts = s->ce_pkts;
	b->next_round_delivered_pkts = s->delivered_pkts;
	b->loss_round_delivered_pkts = s->delivered_pkts;
	cc_bbr_reset_shortterm(b);
	cc_bbr_init_pacing(f, s->srtt_us, s->mss_bytes);
}

/* 5.6.4.4 OnEnterFastRecovery(), OnEnterRTO(): before the host lowers the window */
static inline void cc_bbr_recovery_begins(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	cc_bbr_start_ends(f);
	cc_bbr_save_cwnd(f, cc_bbr_is(b, CC_BBR_RECOVERED));
	cc_bbr_save_state(b);
	cc_bbr_flag(b, CC_BBR_RECOVERED, 1);
}

/* 5.5.11.2: back to what the loss ended */
static inline void cc_bbr_resume_probe(struct cc_bbr_state *b)
{
	cc_u8 phase = b->undo_phase;

	b->undo_phase = CC_BBR_NO_PHASE;
	if (phase == CC_BBR_NO_PHASE || phase == b->phase)
		return;
	if (phase == CC_BBR_STARTUP)
		cc_bbr_flag(b, CC_BBR_FULL_BW_REACHED, 0);
	if (b->phase == CC_BBR_PROBE_RTT)
		return;
	cc_bbr_slow_ends(b);
	if (phase == CC_BBR_STARTUP)
		b->phase = CC_BBR_STARTUP;
	else
		cc_bbr_start_refill(b);
}

/* 5.5.11.2 HandleSpuriousLossDetection() */
static inline void cc_bbr_undone(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	cc_bbr_restore_cwnd(f);
	cc_bbr_flag(b, CC_BBR_LOSS_IN_ROUND, 0);
	cc_bbr_reset_full_bw(b);
	b->bw_shortterm = cc_most(b->bw_shortterm, b->undo_bw_shortterm);
	b->inflight_shortterm_pkts =
		cc_most(b->inflight_shortterm_pkts, b->undo_inflight_shortterm_pkts);
	b->inflight_longterm_pkts =
		cc_most(b->inflight_longterm_pkts, b->undo_inflight_longterm_pkts);
	cc_bbr_resume_probe(b);
}

/* 5.4.1 HandleRestartFromIdle(): nothing is in flight, and a segment is about to leave. */
static inline void cc_bbr_transmission_starts(struct cc_rate_flow *f, const struct cc_bbr *p,
					      const struct cc_rate_sample *s)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	/* A pause, not the first segment. */
	if (b->start_tried_pkts)
		cc_bbr_start_ends(f);
	cc_bbr_init_pacing(f, s->srtt_us, s->mss_bytes);
	if (!(s->flags & CC_RATE_APP_LIMITED))
		return;
	b->now_us = s->now_us;
	cc_bbr_flag(b, CC_BBR_IDLE_RESTART, 1);
	b->extra_acked_from_us = s->now_us;
	if (cc_bbr_is_in_probe_bw(b))
		cc_bbr_set_pacing(f, p, 1000, s->mss_bytes);
	else if (b->phase == CC_BBR_PROBE_RTT)
		cc_bbr_check_probe_rtt_done(f);
}

static inline int cc_bbr_is_starting(struct cc_rate_flow *f)
{
	return cc_bbr_of(f)->phase == CC_BBR_STARTUP;
}

static inline cc_u32 cc_bbr_held_pkts(struct cc_rate_flow *f)
{
	struct cc_bbr_state *b = cc_bbr_of(f);

	if (!cc_bbr_is(b, CC_BBR_FULL_BW_REACHED) || b->min_rtt_us == CC_BBR_NONE)
		return 0;
	return cc_most(cc_bbr_target_pkts(f), CC_BBR_MIN_PIPE_PKTS);
}

#endif
