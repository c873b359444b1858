/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Giving a flow what its rule says. `target` is what bpf_setsockopt takes in the
 * calling program: the sockops context, or the socket itself in an iterator;
 * everything is inlined so that the verifier sees which.
 */
#ifndef FATPATH_SETTINGS_H
#define FATPATH_SETTINGS_H

#include "maps.h"

/* When in its life a flow is given its settings; and in a row of the table,
 * which of them. */
enum fp_stage {
	FP_BEFORE_SYN,	/* only what the SYN depends on: the window scale, by the receive buffer */
	FP_ESTABLISHED, /* all, before the first data byte */
	FP_LIVE,	/* all that can still change */
};

static __always_inline int is_due(enum fp_stage of_setting, enum fp_stage now)
{
	if (now == FP_BEFORE_SYN)
		return of_setting == FP_BEFORE_SYN;
	return now == FP_ESTABLISHED || of_setting != FP_ESTABLISHED;
}

/* The largest window that TCP can announce: 65535 << TCP_MAX_WSCALE (RFC 7323, 2.3). */
#define FP_MAX_WINDOW_BYTES (65535u << 14)

static __always_inline void give(struct fp_flow *flow, void *target, u32 setting, int level,
				 int option, u32 value)
{
	flow->error[setting] = bpf_setsockopt(target, level, option, &value, sizeof(value));
}

/* A rule's buffer, shared among its flows when it divides. */
static __always_inline u32 share_of(const struct fp_rule *rule, u32 setting, u32 rule_id)
{
	u32 bytes = rule->value[setting], share;
	struct fp_share *all;

	if (!FP_IS_GIVEN(rule, FP_DIVIDE) || bytes <= FP_MIN_SHARE_BYTES)
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

/* What all TCP sockets hold has reached the share of tcp_mem, by default where the kernel's pressure begins. */
static __always_inline int is_memory_short(const struct sock *sk)
{
	const struct proto *prot = sk->__sk_common.skc_prot;
	u32 zero = 0;
	struct fp_control *control = bpf_map_lookup_elem(&fp_control, &zero);
	s64 allocated_pages = 0, pressure_pages = 0;

	if (!control || !prot)
		return 0;
	bpf_probe_read_kernel(&allocated_pages, sizeof(allocated_pages), prot->memory_allocated);
	bpf_probe_read_kernel(&pressure_pages, sizeof(pressure_pages), prot->sysctl_mem + 1);
	return allocated_pages * 1000 >= pressure_pages * control->tcp_mem_share_milli;
}

/* The kernel doubles what is asked for. */
static __always_inline int is_larger(const struct sock *sk, u32 setting, u32 bytes)
{
	u32 has = setting == FP_SEND_BUFFER ? sk->sk_sndbuf : sk->sk_rcvbuf;

	return 2ull * bytes > has;
}

static __always_inline void give_buffer(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					u32 setting, u32 bytes)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	if (!FP_IS_GIVEN(&flow->wanted, FP_OVERRIDE_APPLICATION) &&
	    is_programs_own(tp, flow, setting)) {
		flow->error[setting] = FP_KEPT_PROGRAMS_OWN;
		return;
	}
	/* A locked buffer would escape the kernel's own moderation. */
	if (is_larger(sk, setting, bytes) && is_memory_short(sk)) {
		flow->error[setting] = FP_WITHHELD;
		flow->flags |= FP_FLOW_WITHHELD;
		count(FP_COUNT_WITHHELD);
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
	u32 bytes = share_of(rule, FP_SEND_BUFFER, flow->rule_id);

	flow->wanted.value[FP_SEND_BUFFER] = bytes;
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
	u32 bytes = share_of(rule, FP_RECEIVE_BUFFER, flow->rule_id);

	flow->wanted.value[FP_RECEIVE_BUFFER] = bytes;
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
		     rule->value[FP_INITIAL_WINDOW]);
		flow->initial_cwnd_pkts = tp->snd_cwnd;
	}
	if (FP_IS_GIVEN(rule, FP_CWND_CLAMP) && tp->snd_cwnd_clamp != rule->value[FP_CWND_CLAMP])
		give(flow, target, FP_CWND_CLAMP, SOL_TCP, TCP_BPF_SNDCWND_CLAMP,
		     rule->value[FP_CWND_CLAMP]);
}

/* Of the rows of the table those that a plain socket option carries. */
#define GIVE_OPTION(level, option, takes, has, own)                                                \
	{                                                                                          \
		u64 value = rule->value[setting];                                                  \
		give(flow, target, setting, level, option, takes);                                 \
	}
#define GIVE_TIMER(level, option, has, own) GIVE_OPTION(level, option, value, has, own)
#define GIVE_OWN(has)
#define GIVE_LAWS
#define GIVE_RUDE
#define GIVE_ROUTE
#define GIVE_RULE
#define GIVE(NAME, key, unit, least, most, of_setting, way, forms, becomes)                        \
	if (is_due(FP_##of_setting, stage) && FP_IS_GIVEN(rule, FP_##NAME)) {                      \
		enum { setting = FP_##NAME };                                                      \
		GIVE_##way                                                                         \
	}

static __always_inline void give_options(struct fp_flow *flow, void *target,
					 const struct fp_rule *rule, enum fp_stage stage)
{
	FP_SETTING_TABLE(GIVE)
}

#define TAKE_BACK_OPTION(level, option, takes, has, own)                                           \
	give(flow, target, setting, level, option, own);
#define TAKE_BACK_TIMER(level, option, has, own) give(flow, target, setting, level, option, own);
#define TAKE_BACK_OWN(has)
#define TAKE_BACK_LAWS
#define TAKE_BACK_RUDE
#define TAKE_BACK_ROUTE
#define TAKE_BACK_RULE
#define TAKE_BACK(NAME, key, unit, least, most, of_setting, way, forms, becomes)                   \
	if (gone & (1u << FP_##NAME)) {                                                            \
		enum { setting = FP_##NAME };                                                      \
		TAKE_BACK_##way                                                                    \
	}

/*
 * What the flow was given and `rule` (NULL: none) no longer gives goes back to the
 * kernel's own. Buffers cannot; a clamp is left, for lifting it would restart slow start.
 */
static __always_inline void take_back(struct fp_flow *flow, void *target,
				      const struct fp_rule *rule)
{
	u32 gone = flow->wanted.given & ~(rule ? rule->given : 0);

	FP_SETTING_TABLE(TAKE_BACK)
}

static __always_inline void give_all(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				     const struct fp_rule *rule, enum fp_stage stage)
{
	flow->flags &= ~FP_FLOW_WITHHELD;
	if (stage == FP_BEFORE_SYN) {
		/* Undivided: the window scale cannot grow later, the share can. */
		u32 bytes = rule->value[FP_RECEIVE_BUFFER];

		flow->wanted.value[FP_RECEIVE_BUFFER] = bytes;
		if (FP_IS_GIVEN(rule, FP_RECEIVE_BUFFER))
			give_buffer(flow, tp, target, FP_RECEIVE_BUFFER, bytes);
		give_options(flow, target, rule, stage);
		return;
	}
	give_receive_buffer(flow, tp, target, rule);
	give_send_buffer(flow, tp, target, rule);
	give_law(flow, tp, target, rule);
	give_window(flow, tp, target, rule, stage);
	give_options(flow, target, rule, stage);
}

static __always_inline int is_overriding(const struct fp_rule *rule, u32 setting)
{
	return rule && FP_IS_GIVEN(rule, FP_OVERRIDE_APPLICATION) && FP_IS_GIVEN(rule, setting);
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
