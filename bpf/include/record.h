/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a flow: identity, what fatpath asked for, and what the kernel says it has. */
#ifndef FATPATH_RECORD_H
#define FATPATH_RECORD_H

#include "match.h"

#define TICKS() ((u32)bpf_jiffies64())

/* How long a flow had something to send, and what held it back meanwhile. */
struct limits {
	u32 busy_ticks; /* the other two within */
	u32 receiver_ticks;
	u32 send_buffer_ticks;
};

/* tcp_get_info()'s way of adding the interval that is still running. */
static __always_inline struct limits limits_of(struct tcp_sock *tp)
{
	u32 type = BPF_CORE_READ_BITFIELD(tp, chrono_type);
	u32 running = TICKS() - tp->chrono_start;
	u32 busy = tp->chrono_stat[TCP_CHRONO_BUSY - 1];
	u32 receiver = tp->chrono_stat[TCP_CHRONO_RWND_LIMITED - 1];
	u32 buffer = tp->chrono_stat[TCP_CHRONO_SNDBUF_LIMITED - 1];

	if (type == TCP_CHRONO_BUSY)
		busy += running;
	if (type == TCP_CHRONO_RWND_LIMITED)
		receiver += running;
	if (type == TCP_CHRONO_SNDBUF_LIMITED)
		buffer += running;
	return (struct limits){ busy + receiver + buffer, receiver, buffer };
}

static __always_inline void fill_limits(struct fp_flow_record *r, struct tcp_sock *tp)
{
	struct limits limits = limits_of(tp);

	r->busy_ticks = limits.busy_ticks;
	r->receiver_limited_ticks = limits.receiver_ticks;
	r->send_buffer_limited_ticks = limits.send_buffer_ticks;
}

static __always_inline void fill_settings(struct fp_flow_record *r, struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->icsk_inet.sk;
	const struct tcp_congestion_ops *law = icsk->icsk_ca_ops;

	r->send_buffer_bytes = sk->sk_sndbuf;
	r->receive_buffer_bytes = sk->sk_rcvbuf;
	r->pacing_rate_bytes_per_s = sk->sk_pacing_rate;
	r->max_pacing_rate_bytes_per_s = sk->sk_max_pacing_rate;
	r->cwnd_clamp_pkts = tp->snd_cwnd_clamp;
	r->rto_min_ticks = icsk->icsk_rto_min;
	r->delayed_ack_max_ticks = icsk->icsk_delack_max;
	r->notsent_lowat_bytes = tp->notsent_lowat;
	r->send_window_scale = BPF_CORE_READ_BITFIELD_PROBED(tp, rx_opt.snd_wscale);
	r->receive_window_scale = BPF_CORE_READ_BITFIELD_PROBED(tp, rx_opt.rcv_wscale);
	bpf_probe_read_kernel(r->law, sizeof(r->law), &law->name);
}

static __always_inline void fill_measures(struct fp_flow_record *r, struct tcp_sock *tp)
{
	r->bytes_acked = tp->bytes_acked;
	r->bytes_received = tp->bytes_received;
	r->bytes_retransmitted = tp->bytes_retrans;
	r->segments_sent = tp->segs_out;
	r->segments_received = tp->segs_in;
	r->segments_retransmitted = tp->total_retrans;
	r->srtt_us = tp->srtt_us >> 3;
	r->min_rtt_us = tp->rtt_min.s[0].v;
	r->mss_bytes = tp->mss_cache;
	r->cwnd_pkts = tp->snd_cwnd;
	r->ssthresh_pkts = tp->snd_ssthresh;
	r->in_flight_pkts = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	r->peer_window_bytes = tp->snd_wnd;
}

static __always_inline void fill_identity(struct fp_flow_record *r, struct tcp_sock *tp)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	struct sock_common *c = &sk->__sk_common;

	r->family = c->skc_family;
	r->state = c->skc_state;
	r->now_ns = bpf_ktime_get_ns();
	r->netns = c->skc_net.net->ns.inum;
	addresses(tp, r->local_address, r->remote_address);
	r->local_port = c->skc_num;
	r->remote_port = bpf_ntohs(c->skc_dport);
	r->cgroup_id = BPF_CORE_READ(sk, sk_cgrp_data.cgroup, kn, id);
}

static __always_inline void fill_rude(struct fp_flow_record *r, const struct fp_rude_flow *rude)
{
	r->rude_mode = rude ? rude->mode : FP_POLITE;
	r->rude_fair_cwnd_pkts = rude ? rude->fair_cwnd_pkts : 0;
	r->rude_marked_pkts = rude ? rude->marked_pkts : 0;
	r->rude_user = rude ? rude->user : 0;
}

/* Fills all but `kind` and `cookie`. */
static __always_inline void fill_record(struct fp_flow_record *r, struct tcp_sock *tp,
					const struct fp_flow *flow, const struct fp_asked *asked,
					const struct fp_rude_flow *rude)
{
	fill_identity(r, tp);
	fill_measures(r, tp);
	fill_settings(r, tp);
	fill_limits(r, tp);
	__builtin_memcpy(&r->flow, flow, sizeof(*flow));
	if (asked)
		__builtin_memcpy(&r->asked, asked, sizeof(*asked));
	else
		__builtin_memset(&r->asked, 0, sizeof(r->asked));
	fill_rude(r, rude);
	r->pad = 0;
}

#endif
