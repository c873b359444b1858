/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter between the kernel's tcp_sock and the laws of cc/: struct_ops
 * congestion control, one registered law for each of CC_LAWS. The kernel keeps
 * recovery (PRR, RACK); a law says how the window grows and what is left of it after
 * a congestion event, start.h and hystart.h how a flow starts and goes on after a pause.
 *
 * Parameters come from the rule of the flow, at every ACK, so a changed policy
 * changes live flows within a round trip. A flow whose rule does not give it this law
 * (its program chose it) gets the law's initial parameters, one whose parameters are
 * out of range gets Reno, and is counted.
 *
 * Start reading at LAW(), at the end.
 */
#include "include/kernel.h"
#include "include/maps.h"
#include "cc/laws.h"

/* law_state.flags */
#define LAW_PACES 1u	  /* the pacing is a paced start's, and ends with it */
#define LAW_BAD_PARAMS 2u /* counted, until they are good again */
#define LAW_HYSTART 4u	  /* the rule wants it, when it was last read */

/* What is kept of a flow in icsk_ca_priv. */
struct law_state {
	struct cc_memory memory;
	u32 before_pause_pkts; /* cwnd, before the kernel lowered it after a pause; 0 = it did not */
	u32 flags;
};
_Static_assert(sizeof(struct law_state) <= 104, "the size of icsk_ca_priv");
_Static_assert(CC_PARAMS == FP_LAW_PARAMS, "a rule holds every parameter of a law");

/* A law's name as the kernel and fp_rule keep it. */
struct law_name {
	char text[FP_LAW_LEN];
};

/* TCP_INIT_CWND of the kernel (RFC 6928). */
#define INITIAL_WINDOW_PKTS 10

/*
 * tcp_sndbuf_expand() works out 2 x cwnd x a segment's memory in an int. That memory is
 * below twice the MSS and its headers, rounded up to a power of two and struct sk_buff.
 */
#define MAX_WINDOW_BYTES (1u << 29)
#define SEGMENT_OVERHEAD_BYTES 768

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct law_state *state_of(struct tcp_sock *tp)
{
	return (struct law_state *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline void flag(struct tcp_sock *tp, u32 flag, int is_on)
{
	u32 flags = state_of(tp)->flags;

	if (!(flags & flag) != !is_on)
		state_of(tp)->flags = flags ^ flag;
}

static __always_inline struct fp_rule *rule_of(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	return flow ? bpf_map_lookup_elem(&fp_rules, &flow->rule_id) : NULL;
}

/* A program may have chosen another law than its rule. */
static __always_inline int gives(const struct fp_rule *rule, const struct law_name *name)
{
	u64 has[2], wants[2];

	__builtin_memcpy(has, rule->law, sizeof(has));
	__builtin_memcpy(wants, name, sizeof(wants));
	return rule->given & (1u << FP_LAW) && has[0] == wants[0] && has[1] == wants[1];
}

static __always_inline u32 initial_ssthresh_pkts(const struct fp_rule *rule, u32 mss_bytes)
{
	u64 pkts;

	if (!rule->initial_ssthresh_bytes || !mss_bytes)
		return rule->initial_ssthresh_pkts;
	pkts = rule->initial_ssthresh_bytes / mss_bytes;
	if (pkts < CC_MIN_SSTHRESH_PKTS)
		return CC_MIN_SSTHRESH_PKTS;
	return pkts < CC_INFINITE_SSTHRESH ? pkts : CC_INFINITE_SSTHRESH;
}

/* Where the host's own way after a pause holds, it has been gone already. */
static __always_inline enum cc_idle idle_of(u32 after_idle)
{
	switch (after_idle) {
	case FP_IDLE_KEEP:
		return CC_IDLE_KEEP;
	case FP_IDLE_PACE:
		return CC_IDLE_PACE;
	default:
		return CC_IDLE_RESTART;
	}
}

static __always_inline struct cc_start start_of(const struct fp_rule *rule, struct tcp_sock *tp)
{
	struct cc_start start = {};

	if (!rule)
		return start;
	start.initial_rate_bps = rule->initial_rate_bps;
	start.max_ssthresh_pkts = rule->max_ssthresh_pkts;
	start.initial_ssthresh_pkts = initial_ssthresh_pkts(rule, tp->mss_cache);
	start.hystart = !!(rule->flags & FP_RULE_HYSTART);
	start.idle = idle_of(rule->after_idle);
	return start;
}

static __always_inline u32 max_window_pkts(struct tcp_sock *tp)
{
	u32 mss_bytes = tp->rx_opt.mss_clamp;

	if (mss_bytes < tp->mss_cache)
		mss_bytes = tp->mss_cache;
	return MAX_WINDOW_BYTES / (mss_bytes + SEGMENT_OVERHEAD_BYTES);
}

static __always_inline struct cc_window window_of(struct tcp_sock *tp)
{
	u32 clamp_pkts = max_window_pkts(tp);
	struct cc_window w = {
		.cwnd_pkts = tp->snd_cwnd,
		.ssthresh_pkts = tp->snd_ssthresh,
		.clamp_pkts = tp->snd_cwnd_clamp < clamp_pkts ? tp->snd_cwnd_clamp : clamp_pkts,
		.memory = state_of(tp)->memory,
	};
	return w;
}

static __always_inline void set_window(struct tcp_sock *tp, const struct cc_window *w)
{
	tp->snd_cwnd = w->cwnd_pkts;
	tp->snd_ssthresh = w->ssthresh_pkts;
	state_of(tp)->memory = w->memory;
}

/*
 * 1 = `values` are the flow's parameters, its rule's or the law's initial ones; 0 = its
 * rule's are out of range. They are copied before they are checked, for the map may
 * change at any moment.
 */
static __always_inline int parameters(struct tcp_sock *tp, const struct fp_rule *rule,
				      enum cc_law law, const struct law_name *name,
				      cc_u32 values[CC_PARAMS])
{
	int is_good;

	if (!rule || !gives(rule, name)) {
		flag(tp, LAW_BAD_PARAMS, 0);
		cc_law_initial(law, values);
		return 1;
	}
	__builtin_memcpy(values, rule->law_params, sizeof(rule->law_params));
	is_good = cc_law_accepts(law, values);
	if (!is_good && !(state_of(tp)->flags & LAW_BAD_PARAMS))
		count(FP_COUNT_BAD_PARAMS);
	flag(tp, LAW_BAD_PARAMS, !is_good);
	return is_good;
}

/* tcp_is_cwnd_limited(): a window that is not used does not grow (RFC 7661). */
static __always_inline int is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void acked_by(enum cc_law law, const struct law_name *name, struct sock *sk,
				     u32 acked)
{
	struct tcp_sock *tp = tcp(sk);
	cc_u32 values[CC_PARAMS];
	struct cc_start start;
	struct cc_window w;
	struct fp_rule *rule;

	if (!is_cwnd_limited(tp))
		return;
	rule = rule_of(sk);
	start = start_of(rule, tp);
	flag(tp, LAW_HYSTART, start.hystart);
	w = window_of(tp);
	if (parameters(tp, rule, law, name, values))
		cc_acked(law, values, &start, &w, acked);
	else
		cc_acked(CC_LAW_reno, values, &start, &w, acked);
	set_window(tp, &w);
}

static __always_inline u32 ssthresh_by(enum cc_law law, const struct law_name *name,
				       struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	cc_u32 values[CC_PARAMS], ssthresh_pkts;
	struct cc_window w = window_of(tp);

	if (parameters(tp, rule_of(sk), law, name, values))
		ssthresh_pkts = cc_ssthresh(law, values, &w);
	else
		ssthresh_pkts = cc_ssthresh(CC_LAW_reno, values, &w);
	state_of(tp)->memory = w.memory;
	return ssthresh_pkts;
}

/* No faster than SO_MAX_PACING_RATE. Where a rule or sch_fq paces already, they go on. */
static __always_inline void pace(struct sock *sk, u64 rate_bytes_per_s)
{
	u64 most = sk->sk_max_pacing_rate;

	sk->sk_pacing_rate = rate_bytes_per_s < most ? rate_bytes_per_s : most;
	if (sk->sk_pacing_status != SK_PACING_NONE)
		return;
	sk->sk_pacing_status = SK_PACING_NEEDED;
	flag(tcp(sk), LAW_PACES, 1);
}

/* SO_MAX_PACING_RATE is what asks for pacing, beside laws. */
static __always_inline void unpace(struct sock *sk)
{
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul)
		sk->sk_pacing_status = SK_PACING_NONE;
}

static __always_inline void end_paced_start(struct sock *sk)
{
	if (!(state_of(tcp(sk))->flags & LAW_PACES))
		return;
	flag(tcp(sk), LAW_PACES, 0);
	unpace(sk);
}

/* A law that ran before may have left its own pacing, which would hold this one back. */
SEC("struct_ops")
void BPF_PROG(law_init, struct sock *sk)
{
	struct law_state none = {};

	*state_of(tcp(sk)) = none;
	unpace(sk);
}

/* The next law finds no pacing of ours. */
SEC("struct_ops")
void BPF_PROG(law_release, struct sock *sk)
{
	end_paced_start(sk);
}

/*
 * The first data of the connection is about to leave. A clamp comes with an ssthresh as
 * large (TCP_BPF_SNDCWND_CLAMP), which nobody has found on the path.
 */
static __always_inline void begin(struct cc_window *w, const struct cc_start *start)
{
	if (w->ssthresh_pkts >= w->clamp_pkts)
		w->ssthresh_pkts = CC_INFINITE_SSTHRESH;
	cc_begin(w, start);
}

/* RFC 5681, 4.1: RW = min(IW, cwnd). */
static __always_inline u32 restart_window_pkts(const struct fp_rule *rule)
{
	return rule->given & (1u << FP_INITIAL_WINDOW) ? rule->initial_window_pkts
						       : INITIAL_WINDOW_PKTS;
}

/*
 * The pause may be longer than the RTO, and the kernel may have lowered the window
 * already (tcp_slow_start_after_idle): the rule decides anew.
 */
static __always_inline void go_on_after_pause(struct tcp_sock *tp, const struct cc_start *start,
					      struct cc_window *w, u32 initial_window_pkts)
{
	u32 before_pkts = state_of(tp)->before_pause_pkts;
	u32 idle_ticks = (u32)bpf_jiffies64() - tp->lsndtime;
	u32 rto_ticks = tp->inet_conn.icsk_rto;
	u32 restart_pkts = initial_window_pkts;

	if (idle_ticks <= rto_ticks)
		return;
	if (before_pkts) {
		restart_pkts = w->cwnd_pkts;
		w->cwnd_pkts = before_pkts;
	}
	/* Only the ratio of the two times counts. */
	cc_idle_restart(w, start, idle_ticks, rto_ticks, restart_pkts);
}

/* The kernel then starts with a window of 1 (RFC 5681, 3.1; RFC 6298, 5.7). */
static __always_inline int is_syn_lost(struct tcp_sock *tp)
{
	return !tp->data_segs_out && tp->snd_cwnd == 1;
}

/* Nothing is in flight, and a segment is about to leave. */
static __always_inline void transmission_starts(struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct fp_rule *rule = rule_of(sk);
	struct cc_start start = start_of(rule, tp);
	struct cc_window w = window_of(tp);
	u64 rate_bytes_per_s = 0;

	if (!tp->data_segs_out)
		begin(&w, &start);
	else
		w.memory.flags |= CC_BEGAN;
	if (rule && rule->after_idle && tp->data_segs_out)
		go_on_after_pause(tp, &start, &w, restart_window_pkts(rule));
	if (is_syn_lost(tp))
		w.memory.flags |= CC_BEGAN;
	else
		rate_bytes_per_s =
			cc_transmission_starts(&w, &start, tp->srtt_us >> 3, tp->mss_cache);
	set_window(tp, &w);
	flag(tp, LAW_HYSTART, start.hystart);
	if (rate_bytes_per_s)
		pace(sk, rate_bytes_per_s);
}

/* The kernel may say so again for every write before the first segment leaves. */
static __always_inline void window_is_restarted(struct tcp_sock *tp)
{
	if (!state_of(tp)->before_pause_pkts)
		state_of(tp)->before_pause_pkts = tp->snd_cwnd;
}

/* In recovery nothing in flight means that all was lost, and the window is the kernel's. */
static __always_inline int is_open(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_OPEN;
}

SEC("struct_ops")
void BPF_PROG(law_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp(sk);

	if (event == CA_EVENT_CWND_RESTART)
		window_is_restarted(tp);
	if (event != CA_EVENT_TX_START)
		return;
	if (is_open(tp))
		transmission_starts(sk);
	state_of(tp)->before_pause_pkts = 0;
}

/* An ACK, before cong_avoid; one that only opens the peer's window tells nothing of the path. */
SEC("struct_ops")
void BPF_PROG(law_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_start start = {};
	struct cc_window w;

	if (!sample->pkts_acked && sample->rtt_us <= 0)
		return;
	start.hystart = !!(state_of(tp)->flags & LAW_HYSTART);
	if (!start.hystart && !state_of(tp)->memory.paced_from_pkts)
		return;
	w = window_of(tp);
	if (cc_ack_arrived(&w, tp->packets_out + sample->pkts_acked))
		end_paced_start(sk);
	if (sample->rtt_us > 0)
		cc_rtt_sample(&w, &start, sample->rtt_us, tp->snd_una, tp->snd_nxt);
	set_window(tp, &w);
}

/* As tcp_reno_undo_cwnd(); the law's memory goes back too. */
SEC("struct_ops")
u32 BPF_PROG(law_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_window w = window_of(tp);
	u32 cwnd_pkts = cc_undo_cwnd(&w, tp->prior_cwnd);

	state_of(tp)->memory = w.memory;
	return cwnd_pkts;
}

/* Registers a law of CC_LAWS as fp_LAW. */
#define LAW(law)                                                                                   \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(law##_cong_avoid, struct sock *sk, u32 ack, u32 acked)                       \
	{                                                                                          \
		struct law_name name = { "fp_" #law };                                             \
		acked_by(CC_LAW_##law, &name, sk, acked);                                          \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	u32 BPF_PROG(law##_ssthresh, struct sock *sk)                                              \
	{                                                                                          \
		struct law_name name = { "fp_" #law };                                             \
		return ssthresh_by(CC_LAW_##law, &name, sk);                                       \
	}                                                                                          \
	SEC(".struct_ops")                                                                         \
	struct tcp_congestion_ops fp_##law = {                                                     \
		.init = (void *)law_init,                                                          \
		.release = (void *)law_release,                                                    \
		.cong_avoid = (void *)law##_cong_avoid,                                            \
		.ssthresh = (void *)law##_ssthresh,                                                \
		.undo_cwnd = (void *)law_undo_cwnd,                                                \
		.cwnd_event = (void *)law_cwnd_event,                                              \
		.pkts_acked = (void *)law_pkts_acked,                                              \
		.name = "fp_" #law,                                                                \
	};
CC_LAWS(LAW)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
