/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The laws of bpf/cc as functions that Rust can call, and the table of their
 * parameters. Start with bpf/cc/laws.h; this file decides nothing. raw.rs is its twin.
 */
#define CC_ON_HOST
#include "pace.h"
#include "rate_laws.h"
#include "rude.h"
#include "senders.h"

struct fatpath_law {
	const char *name;
	const struct cc_param *params;
	int hystart; /* 1 = where a rule does not say */
};

#define LAW_DESCRIPTION(law) { #law, cc_##law##_params, cc_##law##_hystart },
static const struct fatpath_law laws[] = { CC_ALL_LAWS(LAW_DESCRIPTION){ 0, 0, 0 } };

const struct fatpath_law *fatpath_laws(void)
{
	return laws;
}

int fatpath_accepts(cc_u32 law, const cc_u32 *values)
{
	return cc_law_accepts((enum cc_law)law, values);
}

int fatpath_is_window_law(cc_u32 law)
{
	return cc_is_window_law((enum cc_law)law);
}

void fatpath_rate_begin(cc_u32 law, struct cc_rate_flow *f, const struct cc_rate_sample *s)
{
	cc_rate_begin((enum cc_law)law, f, s);
}

void fatpath_rate_start_at(cc_u32 law, struct cc_rate_flow *f, const struct cc_rate_sample *s,
			   cc_u64 rate_bps)
{
	cc_rate_start_at((enum cc_law)law, f, s, rate_bps);
}

int fatpath_rate_makes_way(cc_u32 law, struct cc_rate_flow *f, const struct cc_rate_sample *s,
		       const struct cc_known_path *known)
{
	return cc_rate_makes_way((enum cc_law)law, f, s, known);
}

void fatpath_rate_start_ends(cc_u32 law, struct cc_rate_flow *f)
{
	cc_rate_start_ends((enum cc_law)law, f);
}

void fatpath_rate_acked(cc_u32 law, const cc_u32 *values, struct cc_rate_flow *f,
			struct cc_rate_sample *s)
{
	cc_rate_acked((enum cc_law)law, values, f, s);
}

void fatpath_rate_recovery_begins(cc_u32 law, struct cc_rate_flow *f)
{
	cc_rate_recovery_begins((enum cc_law)law, f);
}

void fatpath_rate_undone(cc_u32 law, struct cc_rate_flow *f)
{
	cc_rate_undone((enum cc_law)law, f);
}

void fatpath_rate_transmission_starts(cc_u32 law, const cc_u32 *values, struct cc_rate_flow *f,
				      const struct cc_rate_sample *s)
{
	cc_rate_transmission_starts((enum cc_law)law, values, f, s);
}

const struct cc_bbr_state *fatpath_bbr_state(const struct cc_rate_flow *f)
{
	return (const struct cc_bbr_state *)f->own;
}

void fatpath_begin(struct cc_window *w, const struct cc_start *s)
{
	cc_begin(w, s);
}

void fatpath_acked(cc_u32 law, const cc_u32 *values, const struct cc_start *s, struct cc_window *w,
		   cc_u32 acked_pkts)
{
	cc_acked((enum cc_law)law, values, s, w, acked_pkts);
}

cc_u32 fatpath_ssthresh(cc_u32 law, const cc_u32 *values, struct cc_window *w,
			cc_u32 in_flight_pkts)
{
	return cc_ssthresh((enum cc_law)law, values, w, in_flight_pkts);
}

cc_u32 fatpath_undo_cwnd(cc_u32 law, struct cc_window *w, cc_u32 prior_cwnd_pkts)
{
	return cc_undo_cwnd((enum cc_law)law, w, prior_cwnd_pkts);
}

void fatpath_rtt_sample(struct cc_window *w, const struct cc_start *s, cc_u32 rtt_us,
			cc_u32 acked_seq, cc_u32 next_seq)
{
	cc_rtt_sample(w, s, rtt_us, acked_seq, next_seq);
}

void fatpath_idle_restart(struct cc_window *w, const struct cc_start *s, cc_u64 idle_us,
			  cc_u32 rto_us, cc_u32 initial_window_pkts)
{
	cc_idle_restart(w, s, idle_us, rto_us, initial_window_pkts);
}

cc_u64 fatpath_transmission_starts(struct cc_window *w, const struct cc_start *s, cc_u32 srtt_us,
				   cc_u32 mss_bytes)
{
	return cc_transmission_starts(w, s, srtt_us, mss_bytes);
}

void fatpath_change_phase(struct cc_window *w, const struct cc_start *s, struct cc_kept *kept,
			  cc_u32 in_flight_pkts, cc_u32 at_once_pkts, cc_u32 initial_window_pkts)
{
	cc_change_phase(w, s, kept, in_flight_pkts, at_once_pkts, initial_window_pkts);
}

int fatpath_ack_arrived(struct cc_window *w, cc_u32 in_flight_pkts)
{
	return cc_ack_arrived(w, in_flight_pkts);
}

void fatpath_bound_burst(struct cc_window *w, cc_u32 most_pkts, cc_u32 in_flight_pkts)
{
	cc_bound_burst(w, most_pkts, in_flight_pkts);
}

int fatpath_end_burst_bound(struct cc_window *w)
{
	return cc_end_burst_bound(w);
}

cc_u32 fatpath_senders_note(struct cc_senders *s, cc_u32 *counted_in, cc_u64 now_ns, cc_u32 rtt_us)
{
	return cc_senders_note(s, counted_in, now_ns, rtt_us);
}

cc_u64 fatpath_share_of_rate(cc_u64 bytes_per_s, cc_u32 flows)
{
	return cc_share_of_rate(bytes_per_s, flows);
}

cc_u64 fatpath_pace_rate(const struct cc_pace *p, cc_u64 bytes_per_s)
{
	return cc_pace_rate(p, bytes_per_s);
}

void fatpath_pace_note(struct cc_pace *p, cc_u64 now_us, cc_u64 bytes_per_s, cc_u64 sent_bytes,
		       int is_held)
{
	cc_pace_note(p, now_us, bytes_per_s, sent_bytes, is_held);
}

void fatpath_rude_begin(struct cc_rude *r, const struct cc_window *polite,
			const struct cc_rude_now *now)
{
	cc_rude_begin(r, polite, now);
}

void fatpath_rude_resume(struct cc_rude *r, const struct cc_rude_now *now)
{
	cc_rude_resume(r, now);
}

void fatpath_rude_acked(cc_u32 law, const cc_u32 *values, const struct cc_start *s,
			struct cc_rude *r, const struct cc_rude_now *now, const struct cc_rtt *rtt)
{
	cc_rude_acked((enum cc_law)law, values, s, r, now, rtt);
}

void fatpath_rude_congested(cc_u32 law, const cc_u32 *values, struct cc_rude *r,
			    const struct cc_rude_now *now)
{
	cc_rude_congested((enum cc_law)law, values, r, now);
}

void fatpath_rude_timed_out(cc_u32 law, const cc_u32 *values, struct cc_rude *r,
			    const struct cc_rude_now *now)
{
	cc_rude_timed_out((enum cc_law)law, values, r, now);
}

void fatpath_rude_recovery_begins(struct cc_rude *r)
{
	cc_rude_recovery_begins(r);
}

void fatpath_rude_undone(cc_u32 law, struct cc_rude *r)
{
	cc_rude_undone((enum cc_law)law, r);
}

cc_u32 fatpath_rude_cwnd_pkts(const struct cc_rude_now *now)
{
	return cc_rude_cwnd_pkts(now);
}

cc_u64 fatpath_rude_pacing_bytes_per_s(const struct cc_rude *r, const struct cc_rude_now *now,
				       cc_u64 share_bytes_per_s)
{
	return cc_rude_pacing_bytes_per_s(r, now, share_bytes_per_s);
}

void fatpath_rude_off_now(struct cc_rude *r, cc_u32 in_flight_pkts)
{
	cc_rude_off_now(r, in_flight_pkts);
}

cc_u32 fatpath_rude_off_nicely(struct cc_rude *r, cc_u32 in_flight_pkts)
{
	return cc_rude_off_nicely(r, in_flight_pkts);
}

int fatpath_rude_has_converged(cc_u32 used_pkts, cc_u32 fair_pkts, cc_u32 milli)
{
	return cc_rude_has_converged(used_pkts, fair_pkts, milli);
}

cc_u32 fatpath_rude_shadow_acked(cc_u32 law, const cc_u32 *values, const struct cc_start *s,
				 struct cc_rude *r, const struct cc_rtt *rtt, cc_u32 r_pkts,
				 cc_u32 used_pkts, cc_u32 acked_pkts)
{
	return cc_rude_shadow_acked((enum cc_law)law, values, s, r, rtt, r_pkts, used_pkts,
				    acked_pkts);
}

cc_u32 fatpath_rude_shadow_ssthresh(cc_u32 law, const cc_u32 *values, struct cc_rude *r,
				    cc_u32 r_pkts)
{
	return cc_rude_shadow_ssthresh((enum cc_law)law, values, r, r_pkts);
}
