/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow as a law of cc/rate_laws.h sees it: how it stands, and an acknowledgement as the kernel's rate sample
 * (net/ipv4/tcp_rate.c) tells it. It decides nothing. Start at fill_now().
 */
#ifndef FATPATH_RATE_FLOW_H
#define FATPATH_RATE_FLOW_H

#include "law_flow.h"
#include "rate_state.h"
#include "../cc/rate_laws.h"

static __always_inline u32 recovery_flags(struct tcp_sock *tp)
{
	u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);

	if (state == TCP_CA_LOSS)
		return CC_RATE_TIMED_OUT;
	return state == TCP_CA_RECOVERY ? CC_RATE_RECOVERS : 0;
}

/* How the flow stands. */
static __always_inline void fill_now(struct cc_rate_sample *s, struct tcp_sock *tp)
{
	s->now_us = tp->tcp_mstamp;
	s->delivered_pkts = tp->delivered;
	s->lost_pkts = tp->lost;
	s->ce_pkts = tp->delivered_ce;
	s->srtt_us = tp->srtt_us >> 3;
	s->mss_bytes = tp->mss_cache;
	s->in_flight_pkts = in_flight_pkts(tp);
	s->flags = recovery_flags(tp);
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		s->flags |= CC_RATE_CWND_LIMITED;
	if (!BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok))
		s->flags |= CC_RATE_NO_SACK;
}

/* A round trip below a microsecond is one. */
static __always_inline u32 rtt_us_of(const struct rate_sample *rs)
{
	if (rs->rtt_us < 0)
		return 0;
	return rs->rtt_us ? rs->rtt_us : 1;
}

/* What the acknowledgement delivered. The kernel gives no sample shorter than the least round trip. */
static __always_inline void fill_sample(struct cc_rate_sample *s, const struct rate_sample *rs)
{
	s->prior_delivered_pkts = rs->prior_delivered;
	if (rs->delivered > 0 && rs->interval_us > 0) {
		s->interval_us = rs->interval_us;
		s->sampled_pkts = rs->delivered;
	}
	s->acked_pkts = rs->acked_sacked;
	s->newly_lost_pkts = rs->losses > 0 ? rs->losses : 0;
	s->rtt_us = rtt_us_of(rs);
	s->prior_in_flight_pkts = rs->prior_in_flight;
	if (rs->is_app_limited)
		s->flags |= CC_RATE_APP_LIMITED;
}

/* An acknowledgement, as the function below gets it. */
struct rate_ack {
	struct cc_rate_sample sample;
	struct law_in_use use;
};

/* cc_rate_acked() as a global function, as grow() of law_flow.h. */
__noinline int rate_acked(struct cc_rate_flow *flow, struct rate_ack *ack)
{
	if (!flow || !ack)
		return 0;
	cc_rate_acked(ack->use.law, ack->use.values, flow, &ack->sample);
	return 1;
}

#endif
