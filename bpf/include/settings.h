/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Giving a flow what its rule says. `target` is what bpf_setsockopt takes in the
 * calling program: the sockops context, or the socket itself in an iterator;
 * everything is inlined so that the verifier sees which.
 */
#ifndef FATPATH_SETTINGS_H
#define FATPATH_SETTINGS_H

#include "maps.h"
#include "../cc/senders.h"

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

/* Takes a flow off and answers how many there were. Two at once may go below 0, until the next count. */
static __always_inline s64 take_off(struct fp_share *share)
{
	s64 flows = share->flows;

	if (flows > 0)
		__sync_fetch_and_add(&share->flows, -1ull);
	return flows;
}

/* A rule's buffer, shared among its flows when it divides. */
static __always_inline u32 share_of(const struct fp_rule *rule, u32 setting, u32 rule_id)
{
	u32 bytes = rule->value[setting], share;
	struct fp_share *all;

	if (!FP_IS_GIVEN(rule, FP_DIVIDE) || bytes <= FP_MIN_SHARE_BYTES)
		return bytes;
	all = bpf_map_lookup_elem(&fp_shares, &rule_id);
	share = all && (s64)all->flows > 1 ? bytes / (u32)all->flows : bytes;
	return share > FP_MIN_SHARE_BYTES ? share : FP_MIN_SHARE_BYTES;
}

/* Did the program itself set this buffer? It is locked, and not as fatpath left it. */
static __always_inline int is_programs_own(struct tcp_sock *tp, const struct fp_flow *flow,
					   u32 setting)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	u32 locks = BPF_CORE_READ_BITFIELD(sk, sk_userlocks);

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
	s64 pressure_pages = 0;

	if (!control || !prot)
		return 0;
	bpf_probe_read_kernel(&pressure_pages, sizeof(pressure_pages), prot->sysctl_mem + 1);
	return *prot->memory_allocated * 1000 >= pressure_pages * control->tcp_mem_share_milli;
}

/* The kernel doubles what is asked for. */
static __always_inline int is_larger(const struct sock *sk, u32 setting, u32 bytes)
{
	u32 has = setting == FP_SEND_BUFFER ? sk->sk_sndbuf : sk->sk_rcvbuf;

	return 2ull * bytes > has;
}

/* As a socket has it whose SYN the setting came before. */
static __always_inline int is_locked_at(const struct sock *sk, u32 setting, u32 bytes)
{
	u32 lock = setting == FP_SEND_BUFFER ? SOCK_SNDBUF_LOCK : SOCK_RCVBUF_LOCK;
	u32 has = setting == FP_SEND_BUFFER ? sk->sk_sndbuf : sk->sk_rcvbuf;

	return 2ull * bytes == has && BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & lock;
}

/* What was learned of a path replaces a smaller buffer of the program's where it overrides, and never a larger one. */
static __always_inline int keeps_programs_own(struct tcp_sock *tp, const struct fp_flow *flow,
					      u32 setting, u32 bytes)
{
	if (!is_programs_own(tp, flow, setting))
		return 0;
	if (!FP_IS_GIVEN(&flow->wanted, FP_OVERRIDE_APPLICATION))
		return 1;
	return is_learned(flow->rule_id) && !is_larger(&tp->inet_conn.icsk_inet.sk, setting, bytes);
}

static __always_inline void give_buffer(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					u32 setting, u32 bytes)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	if (keeps_programs_own(tp, flow, setting, bytes)) {
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
	if (is_locked_at(sk, setting, bytes))
		flow->error[setting] = 0;
	else if (setting == FP_SEND_BUFFER)
		give(flow, target, setting, SOL_SOCKET, SO_SNDBUF, bytes);
	else
		give(flow, target, setting, SOL_SOCKET, SO_RCVBUF, bytes);
	if (setting == FP_SEND_BUFFER)
		flow->send_buffer_set = sk->sk_sndbuf;
	else
		flow->receive_buffer_set = sk->sk_rcvbuf;
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
						void *target, const struct fp_rule *rule,
						enum fp_stage stage)
{
	u32 bytes = share_of(rule, FP_RECEIVE_BUFFER, flow->rule_id);

	/* Undivided: the window scale cannot grow later, the share can. */
	if (stage == FP_BEFORE_SYN)
		bytes = rule->value[FP_RECEIVE_BUFFER];
	flow->wanted.value[FP_RECEIVE_BUFFER] = bytes;
	if (!FP_IS_GIVEN(rule, FP_RECEIVE_BUFFER))
		return;
	give_buffer(flow, tp, target, FP_RECEIVE_BUFFER, bytes);
	if (stage != FP_BEFORE_SYN && !flow->error[FP_RECEIVE_BUFFER])
		open_window(target);
}

/*
 * A law's name as the kernel and fp_rule keep it; the struct keeps it on the stack. All places of such a name are
 * aligned to words, by which it is read and written: byte by byte it would be most of the program.
 */
struct fp_law_text {
	u8 text[FP_LAW_LEN];
} __attribute__((aligned(8)));

/* A flow that has the law already keeps the law's state. */
static __always_inline int has_law(struct tcp_sock *tp, const u8 law[FP_LAW_LEN])
{
	const u64 *has = (const u64 *)tp->inet_conn.icsk_ca_ops->name;
	const u64 *wants = (const u64 *)law;

	return has[0] == wants[0] && has[1] == wants[1];
}

static __always_inline int set_law(void *target, const u8 law[FP_LAW_LEN])
{
	const u64 *wants = (const u64 *)law;
	u64 name[2] = { wants[0], wants[1] };

	return bpf_setsockopt(target, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
}

static __always_inline void read_law(const struct tcp_sock *tp, u8 law[FP_LAW_LEN])
{
	const u64 *has = (const u64 *)tp->inet_conn.icsk_ca_ops->name;

	((u64 *)law)[0] = has[0];
	((u64 *)law)[1] = has[1];
}

static __always_inline int is_named_as_ours(const char *law)
{
	return law[0] == 'f' && law[1] == 'p' && law[2] == '_';
}

/* Of what a program chose, what was learned of a path overrides buffers alone. */
static __always_inline int does_override(const struct fp_flow *flow, const struct fp_rule *rule)
{
	return FP_IS_GIVEN(rule, FP_OVERRIDE_APPLICATION) && !is_learned(flow->rule_id);
}

/*
 * Did the program itself choose the law? The kernel notes that it was set by setsockopt, also by
 * fatpath's. A program that chose the namespace's default cannot be told from one that chose none.
 */
static __always_inline int is_programs_law(struct tcp_sock *tp, const struct fp_flow *flow)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->icsk_inet.sk;
	const struct net *net = sk->__sk_common.skc_net.net;

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_setsockopt) &&
	       icsk->icsk_ca_ops != net->ipv4.tcp_congestion_control && !has_law(tp, flow->law_set);
}

/* The program's law, where fatpath's is in its place: 1 when the flow has it again. */
static __always_inline int return_law(struct fp_flow *flow, struct tcp_sock *tp, void *target)
{
	if (!flow->law_before[0] || !has_law(tp, flow->law_set) ||
	    set_law(target, flow->law_before))
		return 0;
	flow->law_set[0] = 0;
	return 1;
}

static __always_inline void give_law(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				     const struct fp_rule *rule)
{
	int is_programs;

	if (!FP_IS_GIVEN(rule, FP_LAW) || flow->flags & FP_FLOW_RUDE)
		return;
	is_programs = is_programs_law(tp, flow);
	if (!does_override(flow, rule) && (is_programs || return_law(flow, tp, target))) {
		flow->error[FP_LAW] = FP_KEPT_PROGRAMS_OWN;
		return;
	}
	flow->error[FP_LAW] = 0;
	if (has_law(tp, rule->law))
		return;
	if (is_programs)
		read_law(tp, flow->law_before);
	flow->error[FP_LAW] = set_law(target, rule->law);
	if (!flow->error[FP_LAW])
		__builtin_memcpy(flow->law_set, rule->law, FP_LAW_LEN);
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

static __always_inline struct fp_option *option_of(struct fp_flow *flow, u32 setting)
{
	return &flow->options[setting - FP_FIRST_OPTION];
}

/* What the program set, or the kernel where the program set nothing. */
static __always_inline u64 without_ours(const struct fp_option *option, u64 has)
{
	return option->set && has == option->set ? option->before : has;
}

static __always_inline u32 tick_us(void)
{
	u32 zero = 0;
	struct fp_host *host = bpf_map_lookup_elem(&fp_host, &zero);

	return host ? host->tick_us : 0;
}

/* Rounded as usecs_to_jiffies() of any HZ may: one tick more or less is the same. */
static __always_inline int are_ticks_of(u64 ticks, u64 us)
{
	u64 has_us = ticks * tick_us();

	return !has_us || has_us - us + tick_us() <= 2 * (u64)tick_us();
}

/* What the timer's option takes at most is what the kernel's default was before there was a sysctl. */
static __always_inline u32 timer_us(u64 ticks)
{
	u64 us = ticks * tick_us();

	return us && us < FP_KERNELS_RTO_MIN_US ? us : FP_KERNELS_RTO_MIN_US;
}

/* The kernel refuses a timer of less than two ticks (TCP_TIMEOUT_MIN). */
static __always_inline u32 kernels_least_us(u32 us)
{
	u32 least_us = 2 * tick_us();

	return us < least_us ? least_us : us;
}

static __always_inline u32 kernels_rto_min_us(const struct sock *sk)
{
	struct net *net = BPF_CORE_READ(sk, __sk_common.skc_net.net);

	if (!bpf_core_field_exists(net->ipv4.sysctl_tcp_rto_min_us))
		return FP_KERNELS_RTO_MIN_US;
	return BPF_CORE_READ(net, ipv4.sysctl_tcp_rto_min_us);
}

/* SO_MAX_PACING_RATE of a program takes 64 bits, bpf_setsockopt 32. */
static __always_inline u32 pacing_rate_of(u64 bytes_per_s)
{
	return bytes_per_s < FP_NO_PACING_RATE ? bytes_per_s : FP_NO_PACING_RATE;
}

/*
 * The kernel's own pacing, for which there is no socket option: the kernel begins it when it is given a
 * rate, and goes on when the rate is lifted again. A socket that is not paced has no rate.
 */
static __always_inline void give_own_pacing(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					    const struct fp_rule *rule)
{
	if (!FP_IS_GIVEN(rule, FP_PACING))
		return;
	flow->flags |= FP_FLOW_PACED;
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status != SK_PACING_NONE)
		return;
	flow->flags |= FP_FLOW_PACING_SET;
	give(flow, target, FP_PACING, SOL_SOCKET, SO_MAX_PACING_RATE, FP_NO_PACING_RATE - 1);
	give(flow, target, FP_PACING, SOL_SOCKET, SO_MAX_PACING_RATE, FP_NO_PACING_RATE);
}

/*
 * Only a law in BPF can end it: ours do at their next ACK. Another makes way for one of ours, which
 * ends it when it goes, and begins anew at the window that it had.
 */
static __always_inline void take_back_own_pacing(struct fp_flow *flow, struct tcp_sock *tp,
						 void *target)
{
	struct fp_law_text ours = { "fp_reno" }, law;
	u32 was_set = flow->flags & FP_FLOW_PACING_SET;

	flow->flags &= ~(FP_FLOW_PACED | FP_FLOW_PACING_SET);
	read_law(tp, law.text);
	if (was_set && !is_named_as_ours((const char *)law.text) &&
	    tp->inet_conn.icsk_inet.sk.sk_pacing_status == SK_PACING_NEEDED &&
	    !set_law(target, ours.text))
		set_law(target, law.text);
}

/* Of a rate that flows share the flow's part. */
static __always_inline u64 paced_bytes_per_s(const struct fp_flow *flow, const struct fp_rule *rule)
{
	return cc_share_of_rate(rule->value[FP_PACING_RATE] / 8,
				rule->shares_rate ? flow->shared_by : 0);
}

/* The smaller of the rule's and the program's. */
static __always_inline void give_pacing(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					const struct fp_rule *rule)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	struct fp_option *option = option_of(flow, FP_PACING_RATE);
	u64 before = without_ours(option, sk->sk_max_pacing_rate);
	u64 rate = paced_bytes_per_s(flow, rule);
	int is_programs = before < rate && !does_override(flow, rule);

	if (!FP_IS_GIVEN(rule, FP_PACING_RATE))
		return;
	give(flow, target, FP_PACING_RATE, SOL_SOCKET, SO_MAX_PACING_RATE,
	     pacing_rate_of(is_programs ? before : rate));
	if (is_programs)
		flow->error[FP_PACING_RATE] = FP_KEPT_PROGRAMS_OWN;
	option->before = before;
	option->set = sk->sk_max_pacing_rate;
}

static __always_inline void take_back_pacing(struct fp_flow *flow, struct tcp_sock *tp,
					     void *target)
{
	struct fp_option *option = option_of(flow, FP_PACING_RATE);

	if (option->set && tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate == option->set)
		give(flow, target, FP_PACING_RATE, SOL_SOCKET, SO_MAX_PACING_RATE,
		     pacing_rate_of(option->before));
	option->set = 0;
}

/* Of the rows of the table those that a plain socket option carries; `tp`, `icsk` and `sk` are for `has`. */
#define GIVE_OR_KEEP(level, option, value, has, is_kernels, back)                                  \
	{                                                                                          \
		struct fp_option *kept = option_of(flow, setting);                                 \
		u64 before = without_ours(kept, has);                                              \
                                                                                                   \
		if (does_override(flow, rule) || (is_kernels)) {                                   \
			give(flow, target, setting, level, option, value);                         \
			kept->before = before;                                                     \
			kept->set = has;                                                           \
		} else {                                                                           \
			if (before != has)                                                         \
				give(flow, target, setting, level, option, back);                  \
			kept->set = 0;                                                             \
			flow->error[setting] = FP_KEPT_PROGRAMS_OWN;                               \
		}                                                                                  \
	}
#define GIVE_OPTION(level, option, has, own)                                                       \
	GIVE_OR_KEEP(level, option, rule->value[setting], has, before == (own), before)
#define GIVE_TIMER(level, option, has, own)                                                        \
	GIVE_OR_KEEP(level, option, kernels_least_us(rule->value[setting]), has,                   \
		     are_ticks_of(before, own), timer_us(before))
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

static __always_inline void give_options(struct fp_flow *flow, struct tcp_sock *tp, void *target,
					 const struct fp_rule *rule, enum fp_stage stage)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->icsk_inet.sk;

	FP_SETTING_TABLE(GIVE)
}

#define RETURN_WHAT_WAS(level, option, has, back)                                                  \
	{                                                                                          \
		struct fp_option *kept = option_of(flow, setting);                                 \
		u64 before = kept->before;                                                         \
                                                                                                   \
		if (kept->set && kept->set == has)                                                 \
			give(flow, target, setting, level, option, back);                          \
		kept->set = 0;                                                                     \
	}
#define TAKE_BACK_OPTION(level, option, has, own) RETURN_WHAT_WAS(level, option, has, before)
#define TAKE_BACK_TIMER(level, option, has, own)                                                   \
	RETURN_WHAT_WAS(level, option, has, timer_us(before))
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
 * What the flow was given and `rule` (NULL: none) no longer gives goes back to what it was,
 * unless the program has set it since. Buffers cannot; a clamp is left, for lifting it would
 * restart slow start.
 */
static __always_inline void take_back(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				      const struct fp_rule *rule)
{
	u32 gone = flow->wanted.given & ~(rule ? rule->given : 0);
	struct inet_connection_sock *icsk = &tp->inet_conn;

	FP_SETTING_TABLE(TAKE_BACK)
	if (gone & (1u << FP_PACING_RATE))
		take_back_pacing(flow, tp, target);
	if (gone & (1u << FP_PACING))
		take_back_own_pacing(flow, tp, target);
}

static __always_inline void give_all(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				     const struct fp_rule *rule, enum fp_stage stage)
{
	flow->flags &= ~FP_FLOW_WITHHELD;
	give_receive_buffer(flow, tp, target, rule, stage);
	if (stage != FP_BEFORE_SYN) {
		give_send_buffer(flow, tp, target, rule);
		give_law(flow, tp, target, rule);
		give_window(flow, tp, target, rule, stage);
		give_own_pacing(flow, tp, target, rule);
		give_pacing(flow, tp, target, rule);
	}
	give_options(flow, tp, target, rule, stage);
}

static __always_inline int is_overriding(const struct fp_rule *rule, u32 rule_id, u32 setting,
					 u32 asked_bytes)
{
	if (!rule || !FP_IS_GIVEN(rule, FP_OVERRIDE_APPLICATION) || !FP_IS_GIVEN(rule, setting))
		return 0;
	return !is_learned(rule_id) || asked_bytes <= rule->value[setting];
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
					 const struct fp_rule *rule, u32 rule_id)
{
	if (!is_overriding(rule, rule_id, FP_SEND_BUFFER, asked->send_buffer_bytes))
		honour(target, SO_SNDBUF, &asked->send_buffer_bytes);
	if (!is_overriding(rule, rule_id, FP_RECEIVE_BUFFER, asked->receive_buffer_bytes))
		honour(target, SO_RCVBUF, &asked->receive_buffer_bytes);
}

#endif
