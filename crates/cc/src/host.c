/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The laws of bpf/cc as functions that Rust can call, and the table of their
 * parameters. Start with bpf/cc/laws.h; this file decides nothing. raw.rs is its twin.
 */
#define CC_ON_HOST
#include "laws.h"

struct fatpath_law {
	const char *name;
	const struct cc_param *params;
};

#define LAW_DESCRIPTION(law) { #law, cc_##law##_params },
const struct fatpath_law fatpath_laws[] = { CC_LAWS(LAW_DESCRIPTION){ 0, 0 } };

int fatpath_accepts(cc_u32 law, const cc_u32 *values)
{
	return cc_law_accepts((enum cc_law)law, values);
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

cc_u32 fatpath_undo_cwnd(struct cc_window *w, cc_u32 prior_cwnd_pkts)
{
	return cc_undo_cwnd(w, prior_cwnd_pkts);
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

int fatpath_ack_arrived(struct cc_window *w, cc_u32 in_flight_pkts)
{
	return cc_ack_arrived(w, in_flight_pkts);
}

/* What raw.rs asserts of its twins. */
const cc_u32 fatpath_sizes[] = { sizeof(struct cc_window), sizeof(struct cc_memory),
				 sizeof(struct cc_start) };
