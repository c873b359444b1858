/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Giving a flow what its rule says. `target` is what bpf_setsockopt takes in the
 * calling program: the sockops context, or the socket itself in an iterator;
 * everything is inlined so that the verifier sees which.
 */
#ifndef FATPATH_SETTINGS_H
#define FATPATH_SETTINGS_H

#include "maps.h"

/* When in its life a flow is given its settings. */
enum fp_stage {
	FP_BEFORE_SYN,	/* only what the SYN carries: the window scale, by the receive buffer */
	FP_ESTABLISHED, /* all, before the first data byte */
	FP_LIVE,	/* all that can still change */
};

/* The largest window that TCP can announce: 65535 << TCP_MAX_WSCALE (RFC 7323, 2.3). */
#define FP_MAX_WINDOW_BYTES (65535u << 14)

#define FP_IS_GIVEN(rule, setting) ((rule)->given & (1u << (setting)))

static __always_inline void give(struct fp_flow *flow, void *target, u32 setting, int level,
				 int option, u32 value)
{
	flow->error[setting] = bpf_setsockopt(target, level, option, &value, sizeof(value));
}

/* A share is never so small that it stops a flow: the window of TCP without scaling. */
#define FP_MIN_SHARE_BYTES 65536u

/* A rule's buffer, shared among its flows when it divides. */
static __always_inline u32 share_of(u32 bytes, const struct fp_rule *rule, u32 rule_id)
{
	struct fp_share *all;
	u32 share;

	if (!(rule->flags & FP_RULE_DIVIDE) || bytes <= FP_MIN_SHARE_BYTES)
		return bytes;
	all = bpf_map_lookup_elem(&fp_shares, &rule_id);
	share = all && all->flows > 1 ? bytes / (u32)all->flows : bytes;
	return share > FP_MIN_SHARE_BYTES ? share : FP_MIN_SHARE_BYTES;
}

/* Did the program itself set this buffer? It is locked, and not as fatpath left it. */
static __always_inline int is_programs_own(struct tcp_sock *tp, const struct fp_flow *flow,
					   u32 setting)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	u32 locks = BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks);

	if (setting == FP_SEND_BUFFER)
		return (locks & SOCK_SNDBUF_LOCK) && (u32)sk->sk_sndbuf != flow->send_buffer_set;
	return (locks & SOCK_RCVBUF_LOCK) && (u32)sk->sk_rcvbuf != flow->receive_buffer_set;
}

static __always_inline void give_buffer(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					u32 setting, u32 bytes)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	if (!(flow->wanted.flags & FP_RULE_OVERRIDE) && is_programs_own(tp, flow, setting)) {
		flow->error[setting] = FP_KEPT_PROGRAMS_OWN;
		return;
	}
	if (setting == FP_SEND_BUFFER) {
		give(flow, target, setting, SOL_SOCKET, SO_SNDBUF, bytes);
		flow->send_buffer_set = sk->sk_sndbuf;
	} else {
		give(flow, target, setting, SOL_SOCKET, SO_RCVBUF, bytes);
		flow->receive_buffer_set = sk->sk_rcvbuf;
	}
}

static __always_inline void give_send_buffer(struct fp_flow *flow, struct tcp_sock *tp,
					     void *target, const struct fp_rule *rule)
{
	u32 bytes = share_of(rule->send_buffer_bytes, rule, flow->rule_id);

	flow->wanted.send_buffer_bytes = bytes;
	if (FP_IS_GIVEN(rule, FP_SEND_BUFFER))
		give_buffer(flow, tp, target, FP_SEND_BUFFER, bytes);
}

/*
 * SO_RCVBUF leaves the window clamp where the old buffer had it, and ends the
 * autotuning that would raise it. The kernel bounds the window by the buffer anyway.
 */
static __always_inline void open_window(void *target)
{
	u32 clamp_bytes = FP_MAX_WINDOW_BYTES;

	bpf_setsockopt(target, SOL_TCP, TCP_WINDOW_CLAMP, &clamp_bytes, sizeof(clamp_bytes));
}

static __always_inline void give_receive_buffer(struct fp_flow *flow, struct tcp_sock *tp,
						void *target, const struct fp_rule *rule)
{
	u32 bytes = share_of(rule->receive_buffer_bytes, rule, flow->rule_id);

	flow->wanted.receive_buffer_bytes = bytes;
	if (!FP_IS_GIVEN(rule, FP_RECEIVE_BUFFER))
		return;
	give_buffer(flow, tp, target, FP_RECEIVE_BUFFER, bytes);
	if (!flow->error[FP_RECEIVE_BUFFER])
		open_window(target);
}

/* A flow that has the law already keeps the law's state. */
static __always_inline int has_law(struct tcp_sock *tp, const u8 law[FP_LAW_LEN])
{
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;
	u64 has[2] = {}, wants[2];

	bpf_probe_read_kernel(has, sizeof(has), &ops->name);
	__builtin_memcpy(wants, law, sizeof(wants));
	return has[0] == wants[0] && has[1] == wants[1];
}

static __always_inline int set_law(void *target, const u8 law[FP_LAW_LEN])
{
	char name[FP_LAW_LEN];

	__builtin_memcpy(name, law, sizeof(name));
	return bpf_setsockopt(target, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
}

static __always_inline void give_law(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				     const struct fp_rule *rule)
{
	if (!FP_IS_GIVEN(rule, FP_LAW) || flow->flags & FP_FLOW_RUDE)
		return;
	flow->error[FP_LAW] = has_law(tp, rule->law) ? 0 : set_law(target, rule->law);
}

/*
 * After the law, whose init may set the window. TCP_BPF_SNDCWND_CLAMP also sets
 * ssthresh, so a live flow gets it only when it changes.
 */
static __always_inline void give_window(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					const struct fp_rule *rule, enum fp_stage stage)
{
	/* A window of 1 says that the SYN was lost (RFC 5681, 3.1): it stays. */
	if (FP_IS_GIVEN(rule, FP_INITIAL_WINDOW) && stage == FP_ESTABLISHED && tp->snd_cwnd > 1) {
		give(flow, target, FP_INITIAL_WINDOW, SOL_TCP, TCP_BPF_IW,
		     rule->initial_window_pkts);
		flow->initial_cwnd_pkts = tp->snd_cwnd;
	}
	if (FP_IS_GIVEN(rule, FP_CWND_CLAMP) && tp->snd_cwnd_clamp != rule->cwnd_clamp_pkts)
		give(flow, target, FP_CWND_CLAMP, SOL_TCP, TCP_BPF_SNDCWND_CLAMP,
		     rule->cwnd_clamp_pkts);
}

static __always_inline void give_timers(struct fp_flow *flow, void *target,
					const struct fp_rule *rule)
{
	if (FP_IS_GIVEN(rule, FP_RTO_MIN))
		give(flow, target, FP_RTO_MIN, SOL_TCP, TCP_BPF_RTO_MIN, rule->rto_min_us);
	if (FP_IS_GIVEN(rule, FP_DELAYED_ACK_MAX))
		give(flow, target, FP_DELAYED_ACK_MAX, SOL_TCP, TCP_BPF_DELACK_MAX,
		     rule->delayed_ack_max_us);
}

static __always_inline void give_rates(struct fp_flow *flow, void *target,
				       const struct fp_rule *rule)
{
	if (FP_IS_GIVEN(rule, FP_PACING_RATE))
		give(flow, target, FP_PACING_RATE, SOL_SOCKET, SO_MAX_PACING_RATE,
		     (u32)rule->pacing_rate_bytes_per_s);
	if (FP_IS_GIVEN(rule, FP_NOTSENT_LOWAT))
		give(flow, target, FP_NOTSENT_LOWAT, SOL_TCP, TCP_NOTSENT_LOWAT,
		     rule->notsent_lowat_bytes);
}

/* TCP_RTO_MIN and TCP_DELACK_MAX of the kernel. */
#define FP_KERNELS_RTO_MIN_US 200000u
#define FP_KERNELS_DELACK_MAX_US 200000u
#define FP_NO_PACING_RATE 0xffffffffu

/*
 * What the flow was given and `rule` (NULL: none) no longer gives goes back to the
 * kernel's own. Buffers cannot; a clamp is left, for lifting it would restart slow start.
 */
static __always_inline void take_back(struct fp_flow *flow, void *target,
				      const struct fp_rule *rule)
{
	u32 gone = flow->wanted.given & ~(rule ? rule->given : 0);

	if (gone & (1u << FP_PACING_RATE))
		give(flow, target, FP_PACING_RATE, SOL_SOCKET, SO_MAX_PACING_RATE,
		     FP_NO_PACING_RATE);
	if (gone & (1u << FP_RTO_MIN))
		give(flow, target, FP_RTO_MIN, SOL_TCP, TCP_BPF_RTO_MIN, FP_KERNELS_RTO_MIN_US);
	if (gone & (1u << FP_DELAYED_ACK_MAX))
		give(flow, target, FP_DELAYED_ACK_MAX, SOL_TCP, TCP_BPF_DELACK_MAX,
		     FP_KERNELS_DELACK_MAX_US);
	if (gone & (1u << FP_NOTSENT_LOWAT))
		give(flow, target, FP_NOTSENT_LOWAT, SOL_TCP, TCP_NOTSENT_LOWAT, 0);
}

static __always_inline void give_all(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				     const struct fp_rule *rule, enum fp_stage stage)
{
	if (stage == FP_BEFORE_SYN) {
		/* Undivided: the window scale cannot grow later, the share can. */
		flow->wanted.receive_buffer_bytes = rule->receive_buffer_bytes;
		if (FP_IS_GIVEN(rule, FP_RECEIVE_BUFFER))
			give_buffer(flow, tp, target, FP_RECEIVE_BUFFER,
				    rule->receive_buffer_bytes);
		return;
	}
	give_receive_buffer(flow, tp, target, rule);
	give_send_buffer(flow, tp, target, rule);
	give_law(flow, tp, target, rule);
	give_window(flow, tp, target, rule, stage);
	give_timers(flow, target, rule);
	give_rates(flow, target, rule);
}

static __always_inline int is_overriding(const struct fp_rule *rule, u32 setting)
{
	return rule && rule->flags & FP_RULE_OVERRIDE && FP_IS_GIVEN(rule, setting);
}

/* Once: what the program asks for later goes to the kernel, and is not undone by this. */
static __always_inline void honour(void *target, int option, u32 *asked_bytes)
{
	u32 bytes = *asked_bytes;

	if (!bytes)
		return;
	bpf_setsockopt(target, SOL_SOCKET, option, &bytes, sizeof(bytes));
	*asked_bytes = 0;
}

/*
 * What the program asked for, and fatpath kept from the kernel, takes effect
 * after all where the rule (NULL: none) gives no buffer that overrides it.
 */
static __always_inline void honour_asked(void *target, struct fp_asked *asked,
					 const struct fp_rule *rule)
{
	if (!is_overriding(rule, FP_SEND_BUFFER))
		honour(target, SO_SNDBUF, &asked->send_buffer_bytes);
	if (!is_overriding(rule, FP_RECEIVE_BUFFER))
		honour(target, SO_RCVBUF, &asked->receive_buffer_bytes);
}

#endif
