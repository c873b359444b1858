/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter between the kernel's tcp_sock and the laws of cc/rate_laws.h: struct_ops congestion control with
 * cong_control, one registered law for each of CC_RATE_LAWS. The kernel keeps what is sent again, and when; with
 * cong_control it reduces no window by itself but after a timeout. It paces at the law's rate, or sch_fq does.
 *
 * Parameters come from the rule of the flow, at every ACK, as for the other laws (laws.bpf.c). A flow for which
 * there is no memory has Reno's window, and no pacing.
 *
 * Start reading at RATE_LAW(), at the end.
 */
#include "include/count_ack.h"
#include "include/going_polite.h"
#include "include/pacing.h"
#include "include/rate_flow.h"

extern int LINUX_KERNEL_VERSION __kconfig;
#define KERNEL_6_10 ((6 << 16) + (10 << 8))

/* For a test: rate_trace.bpf.c. Before the window is set. */
#ifndef TRACE
#define TRACE(sk, question, flow, sample)
#endif

/*
 * The last argument of cong_control, the second before 6.10 and the fourth from then on. One load for each: the
 * verifier takes no offset that is worked out.
 */
static __always_inline const struct rate_sample *sample_of(void *ctx)
{
	u64 sample;

	if (LINUX_KERNEL_VERSION >= KERNEL_6_10)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(sample) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(sample) : "r"(ctx));
	return (const struct rate_sample *)sample;
}

/* As use_law(), for a law that is constant: no function is called, and no switch is left. */
static __always_inline void use_constant_law(enum cc_law law, struct sock *sk,
					     struct law_in_use *use)
{
	struct fp_rule *rule = rule_of(sk);
	int is_given = gives_law(rule) && is_name_of(law, (const struct law_name *)rule->law);
	int is_good;

	use->law = law;
	copy_values(use, rule, is_given);
	is_good = settle_by(law, use);
	if (!is_good)
		cc_law_initial(law, use->values);
	note_values(tcp(sk), is_good);
}

/* The kernel may have lowered the window, and a policy the clamp. */
static __always_inline void take_window(struct cc_rate_flow *f, struct tcp_sock *tp)
{
	f->cwnd_pkts = tp->snd_cwnd;
	f->clamp_pkts = clamp_pkts(tp);
}

/* How the flow stands, before its law is asked. */
static __always_inline void take_now(struct cc_rate_flow *f, struct cc_rate_sample *now,
				     struct tcp_sock *tp)
{
	take_window(f, tp);
	fill_now(now, tp);
}

static __always_inline void send_by(struct sock *sk, struct cc_rate_flow *f)
{
	tcp(sk)->snd_cwnd = f->cwnd_pkts;
	pace(sk, cc_pace_rate(pace_of(f), f->pacing_bytes_per_s));
}

/* Segments wait to be sent. Where none do, less than the rate leaves because there is nothing more. */
static __always_inline int has_unsent(const struct tcp_sock *tp, u32 mss_bytes)
{
	return tp->write_seq - tp->snd_nxt >= mss_bytes || tp->lost_out > tp->retrans_out;
}

/*
 * By the program, a rate that it or its rule set, the peer's window, the buffer or the law's window: what is sent does
 * not say how late the pace is.
 */
static __always_inline int is_held(struct sock *sk, const struct cc_rate_flow *f,
				   const struct cc_rate_sample *s)
{
	u32 burst_pkts = CC_BBR_QUANTUM_BYTES / cc_most(s->mss_bytes, 1);
	struct tcp_sock *tp = tcp(sk);

	return tp->app_limited || !has_unsent(tp, s->mss_bytes) ||
	       sk->sk_pacing_rate >= sk->sk_max_pacing_rate ||
	       BPF_CORE_READ_BITFIELD(tp, chrono_type) > TCP_CHRONO_BUSY ||
	       s->prior_in_flight_pkts + burst_pkts >= f->cwnd_pkts;
}

/* The handshake of a flow that waited before it sends is too long ago. */
static __always_inline u32 fresh_srtt_us(struct sock *sk, u32 srtt_us)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct tcp_sock *tp = tcp(sk);

	return flow && has_waited(flow, tp) ? 0 : srtt_us;
}

static __always_inline void begin(enum cc_law law, struct sock *sk, struct cc_rate_flow *f)
{
	struct cc_rate_sample now = {};

	__builtin_memset(f, 0, sizeof(*f));
	take_now(f, &now, tcp(sk));
	cc_rate_begin(law, f, &now);
	TRACE(sk, BEGIN, f, &now);
	send_by(sk, f);
}

/* Whether others fill, or may fill, a path that was learned, and the flow makes way. */
static __always_inline int makes_way(enum cc_law law, struct sock *sk, struct cc_rate_flow *f)
{
	struct cc_known_path known = known_path(sk);
	struct cc_rate_sample now = {};
	struct tcp_sock *tp = tcp(sk);

	take_now(f, &now, tp);
	if (tp->data_segs_out)
		now.flags |= CC_RATE_HAD_LAW;
	else
		now.srtt_us = fresh_srtt_us(sk, now.srtt_us);
	if (!cc_rate_makes_way(law, f, &now, &known))
		return 0;
	send_by(sk, f);
	return 1;
}

static __always_inline void init_by(enum cc_law law, struct sock *sk)
{
	struct law_state none = {};
	struct cc_rate_flow *f;

	*state_of(tcp(sk)) = none;
	if (is_going_polite(sk))
		end_going_polite(sk);
	f = bpf_sk_storage_get(&fp_rate_flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!f) {
		count(FP_COUNT_NO_STORAGE);
		return;
	}
	/* As the kernel's own bbr: no loss was found yet, whatever the law before found. */
	tcp(sk)->snd_ssthresh = CC_INFINITE_SSTHRESH;
	begin(law, sk, f);
	/* Of a flow that has sent nothing, starts_by() asks: a rule may give a window until then. */
	if (tcp(sk)->data_segs_out)
		makes_way(law, sk, f);
}

/* The next law goes on with what the path was found to hold, at its own rate. */
static __always_inline void release_by(enum cc_law law, struct sock *sk)
{
	struct cc_rate_flow *f = rate_flow_of(sk);
	struct tcp_sock *tp = tcp(sk);
	u32 held_pkts = f ? cc_rate_held_pkts(law, f) : 0;

	if (f) {
		take_window(f, tp);
		cc_rate_start_ends(law, f);
		tp->snd_cwnd = f->cwnd_pkts;
	}
	if (held_pkts) {
		tp->snd_ssthresh = held_pkts;
		tp->snd_cwnd = cc_least(tp->snd_cwnd, held_pkts);
	}
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	unpace(sk);
	bpf_sk_storage_delete(&fp_rate_flows, sk);
}

/* Without memory: Reno's window (RFC 5681), at once at what is left after a loss. */
static __always_inline void fall_back(struct sock *sk, const struct rate_sample *rs)
{
	struct law_ack ack = { .use.law = CC_LAW_reno, .acked_pkts = rs->acked_sacked };
	struct tcp_sock *tp = tcp(sk);
	struct cc_window w = window_of(tp);

	if (recovery_flags(tp) & CC_RATE_RECOVERS)
		w.cwnd_pkts = cc_least(w.cwnd_pkts, w.ssthresh_pkts);
	else if (is_cwnd_limited(tp))
		grow(&w, &ack);
	set_window(tp, &w);
}

static __always_inline void control_by(enum cc_law law, struct sock *sk,
				       const struct rate_sample *rs)
{
	struct cc_rate_flow *f = rate_flow_of(sk);
	struct rate_ack ack = {};
	struct tcp_sock *tp = tcp(sk);

	if (!f) {
		fall_back(sk, rs);
		return;
	}
	use_constant_law(law, sk, &ack.use);
	take_now(f, &ack.sample, tp);
	fill_sample(&ack.sample, rs);
	count_ack(sk, cc_rate_is_starting(law, f));
	cc_pace_note(pace_of(f), ack.sample.now_us, f->pacing_bytes_per_s, tp->bytes_sent,
		     is_held(sk, f, &ack.sample));
	rate_acked(f, &ack);
	TRACE(sk, ACKED, f, &ack.sample);
	send_by(sk, f);
}

/* Recovery begins, or a timeout: before the kernel lowers the window. */
static __always_inline u32 ssthresh_by(enum cc_law law, struct sock *sk)
{
	struct cc_rate_flow *f = rate_flow_of(sk);
	struct tcp_sock *tp = tcp(sk);

	if (!f)
		return cc_most(tp->snd_cwnd / 2, CC_MIN_SSTHRESH_PKTS);
	take_window(f, tp);
	cc_rate_recovery_begins(law, f);
	TRACE(sk, RECOVERY_BEGINS, f, NULL);
	tp->snd_cwnd = f->cwnd_pkts;
	return tp->snd_ssthresh;
}

static __always_inline u32 undo_by(enum cc_law law, struct sock *sk)
{
	struct cc_rate_flow *f = rate_flow_of(sk);
	struct tcp_sock *tp = tcp(sk);

	if (!f)
		return cc_most(tp->snd_cwnd, tp->prior_cwnd);
	take_window(f, tp);
	cc_rate_undone(law, f);
	TRACE(sk, UNDONE, f, NULL);
	return f->cwnd_pkts;
}

/* At the rate that the rule knows of the path, unless the kernel knows better. */
static __always_inline void start_at_rate(enum cc_law law, struct sock *sk, struct cc_rate_flow *f)
{
	struct fp_rule *rule = rule_of(sk);
	struct cc_rate_sample now = {};
	struct tcp_sock *tp = tcp(sk);

	if (!rule || !rule->value[FP_INITIAL_RATE] || is_syn_lost(tp) || is_start_unchecked(sk))
		return;
	take_now(f, &now, tp);
	cc_rate_start_at(law, f, &now, rule->value[FP_INITIAL_RATE]);
	send_by(sk, f);
}

/* Nothing is in flight. A rule's initial window was set after init(). */
static __always_inline void starts_by(enum cc_law law, struct sock *sk, enum tcp_ca_event event)
{
	struct cc_rate_flow *f = rate_flow_of(sk);
	struct cc_rate_sample now = {};
	struct law_in_use use = {};
	struct tcp_sock *tp = tcp(sk);

	if (event != CA_EVENT_TX_START || !f)
		return;
	if (!tp->data_segs_out) {
		begin(law, sk, f);
		if (!makes_way(law, sk, f))
			start_at_rate(law, sk, f);
		return;
	}
	use_constant_law(law, sk, &use);
	take_now(f, &now, tp);
	if (tp->app_limited)
		now.flags |= CC_RATE_APP_LIMITED;
	cc_rate_transmission_starts(law, use.values, f, &now);
	TRACE(sk, TRANSMISSION_STARTS, f, &now);
	send_by(sk, f);
}

/* Twice the window is in flight while ProbeBW asks for more: as the kernel's own bbr. */
SEC("struct_ops")
u32 BPF_PROG(rate_sndbuf_expand, struct sock *sk)
{
	return 3;
}

/* Registers a law of CC_RATE_LAWS as fp_LAW. */
#define RATE_LAW(law)                                                                              \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(law##_init, struct sock *sk)                                                 \
	{                                                                                          \
		init_by(CC_LAW_##law, sk);                                                         \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(law##_release, struct sock *sk)                                              \
	{                                                                                          \
		release_by(CC_LAW_##law, sk);                                                      \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	int law##_cong_control(u64 *ctx)                                                           \
	{                                                                                          \
		control_by(CC_LAW_##law, (struct sock *)ctx[0], sample_of(ctx));                   \
		return 0;                                                                          \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	u32 BPF_PROG(law##_ssthresh, struct sock *sk)                                              \
	{                                                                                          \
		return ssthresh_by(CC_LAW_##law, sk);                                              \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	u32 BPF_PROG(law##_undo_cwnd, struct sock *sk)                                             \
	{                                                                                          \
		return undo_by(CC_LAW_##law, sk);                                                  \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(law##_cwnd_event, struct sock *sk, enum tcp_ca_event event)                  \
	{                                                                                          \
		starts_by(CC_LAW_##law, sk, event);                                                \
	}                                                                                          \
	SEC(".struct_ops")                                                                         \
	struct tcp_congestion_ops fp_##law = {                                                     \
		.init = (void *)law##_init,                                                        \
		.release = (void *)law##_release,                                                  \
		.cong_control = (void *)law##_cong_control,                                        \
		.ssthresh = (void *)law##_ssthresh,                                                \
		.undo_cwnd = (void *)law##_undo_cwnd,                                              \
		.cwnd_event = (void *)law##_cwnd_event,                                            \
		.sndbuf_expand = (void *)rate_sndbuf_expand,                                       \
		.name = "fp_" #law,                                                                \
	};
CC_RATE_LAWS(RATE_LAW)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
