/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection at one moment: everything of struct fp_tcp, read from tcp_sock. It decides
 * nothing. Start at fill_tcp().
 *
 * Fields are those of tcp_get_info(), in its units, so that `ss -ti` says the same.
 */
#ifndef FATPATH_TCP_H
#define FATPATH_TCP_H

#include "match.h"

/* tcp_sock.ecn_flags: TCP_ECN_OK, and from 6.15 on TCP_ECN_MODE_ACCECN, a free bit before. */
#define ECN_IS_ON (1 | 1 << 4)

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

static __always_inline void fill_identity(struct fp_tcp *r, struct tcp_sock *tp)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	struct sock_common *c = &sk->__sk_common;
	const u64 *law = (const u64 *)tp->inet_conn.icsk_ca_ops->name;

	r->cgroup_id = sk->sk_cgrp_data.cgroup->kn->id;
	addresses(tp, r->local_address, r->remote_address);
	r->local_port = c->skc_num;
	r->remote_port = bpf_ntohs(c->skc_dport);
	r->netns = c->skc_net.net->ns.inum;
	r->state = c->skc_state;
	*(u64 *)r->law = law[0];
	*(u64 *)(r->law + 8) = law[1];
}

static __always_inline void fill_perf(struct fp_tcp *r, struct tcp_sock *tp)
{
	struct limits limits = limits_of(tp);

	r->bytes_sent = tp->bytes_sent;
	r->bytes_acked = tp->bytes_acked;
	r->bytes_received = tp->bytes_received;
	r->bytes_retrans = tp->bytes_retrans;
	r->snd_una = tp->snd_una;
	r->snd_nxt = tp->snd_nxt;
	r->rcv_nxt = tp->rcv_nxt;
	r->busy_ticks = limits.busy_ticks;
	r->receiver_limited_ticks = limits.receiver_ticks;
	r->send_buffer_limited_ticks = limits.send_buffer_ticks;
	r->limited_by = BPF_CORE_READ_BITFIELD(tp, chrono_type);
}

static __always_inline void fill_path(struct fp_tcp *r, struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	r->srtt_us = tp->srtt_us >> 3;
	r->rttvar_us = tp->mdev_us >> 2;
	r->min_rtt_us = tp->rtt_min.s[0].v;
	r->rto_ticks = icsk->icsk_rto;
	r->rcv_rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
	r->mss_bytes = tp->mss_cache;
	r->adv_mss_bytes = tp->advmss;
	r->pmtu_bytes = icsk->icsk_pmtu_cookie;
	r->dsack_dups = tp->dsack_dups;
	r->reord_seen = tp->reord_seen;
	r->reordering_pkts = tp->reordering;
	r->rcv_ooopack = tp->rcv_ooopack;
}

static __always_inline u32 ca_state_of(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}

static __always_inline void fill_stack(struct fp_tcp *r, struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	r->ca_state = ca_state_of(tp);
	r->cwnd_pkts = tp->snd_cwnd;
	r->ssthresh_pkts = tp->snd_ssthresh;
	r->packets_out = tp->packets_out;
	r->sacked_out = tp->sacked_out;
	r->lost_out = tp->lost_out;
	r->retrans_out = tp->retrans_out;
	r->peer_window_bytes = tp->snd_wnd;
	r->max_peer_window_bytes = tp->max_window;
	r->receive_window_bytes = tp->rcv_wnd;
	r->send_wscale = BPF_CORE_READ_BITFIELD(tp, rx_opt.snd_wscale);
	r->receive_wscale = BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale);
	r->retransmits = icsk->icsk_retransmits;
	r->backoff = icsk->icsk_backoff;
	r->rate_delivered_pkts = tp->rate_delivered;
	r->rate_interval_us = tp->rate_interval_us;
}

/* RFC 4898: the sequence space that it spans, with the gaps. At a FIN rcv_nxt may be beyond what is still queued. */
static __always_inline u32 reasm_queue_bytes(const struct tcp_sock *tp)
{
	const struct tcp_skb_cb *last;
	s32 bytes;

	if (!tp->out_of_order_queue.rb_node)
		return 0;
	last = (const struct tcp_skb_cb *)tp->ooo_last_skb->cb;
	bytes = BPF_CORE_READ(last, end_seq) - tp->rcv_nxt;
	return bytes > 0 ? bytes : 0;
}

static __always_inline void fill_tune(struct fp_tcp *r, struct tcp_sock *tp)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	r->unsent_bytes = tp->write_seq - tp->snd_nxt;
	r->unread_bytes = tp->rcv_nxt - tp->copied_seq;
	r->reasm_queue_bytes = reasm_queue_bytes(tp);
	r->send_buffer_bytes = sk->sk_sndbuf;
	r->receive_buffer_bytes = sk->sk_rcvbuf;
	r->locked_buffers =
		BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	r->cwnd_clamp_pkts = tp->snd_cwnd_clamp;
	r->window_clamp_bytes = tp->window_clamp;
	r->pacing_rate_bytes_per_s = sk->sk_pacing_rate;
}

/*
 * SOCK_NOSPACE; a socket that no program holds any more has no struct socket. Of one with
 * nothing to send it is not asked: in a walk that would be a line of the cache more.
 * TCP_NOTSENT_LOWAT sets the flag, too. The buffer's memory is meant only until a third of it
 * is free, which is when sk_stream_write_space() clears the flag.
 */
static __always_inline int has_no_space(const struct tcp_sock *tp, struct sock *sk)
{
	return tp->write_seq != tp->snd_una && sk->sk_socket &&
	       sk->sk_socket->flags & (1ul << SOCK_NOSPACE_BIT) &&
	       3ll * sk->sk_wmem_queued > 2ll * sk->sk_sndbuf;
}

static __always_inline u32 flags_of(struct tcp_sock *tp, const struct fp_rude_flow *rude)
{
	u32 flags = 0;

	if (tp->ecn_flags & ECN_IS_ON)
		flags |= FP_SAMPLE_ECN;
	if (BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok))
		flags |= FP_SAMPLE_SACK;
	if (BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok))
		flags |= FP_SAMPLE_TIMESTAMPS;
	if (BPF_CORE_READ_BITFIELD(tp, rate_app_limited))
		flags |= FP_SAMPLE_APP_LIMITED;
	if (tp->app_limited)
		flags |= FP_SAMPLE_NOW_APP_LIMITED;
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		flags |= FP_SAMPLE_CWND_LIMITED;
	if (has_no_space(tp, &tp->inet_conn.icsk_inet.sk))
		flags |= FP_SAMPLE_NO_SPACE;
	if (rude && rude->mode != FP_POLITE)
		flags |= FP_SAMPLE_RUDE;
	return flags;
}

/* Fills all but `now_ns` and `cookie`. */
static __always_inline void fill_tcp(struct fp_tcp *r, struct tcp_sock *tp,
				     const struct fp_rude_flow *rude)
{
	fill_identity(r, tp);
	fill_perf(r, tp);
	fill_path(r, tp);
	fill_stack(r, tp);
	fill_tune(r, tp);
	r->flags = flags_of(tp, rude);
}

#endif
