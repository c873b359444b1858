/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter between the kernel's tcp_sock and the laws of cc/: struct_ops
 * congestion control, one registered law for each of CC_LAWS, all with the same programs.
 * The kernel keeps recovery (PRR, RACK); a law says how the window grows and what is left
 * of it after a congestion event, start.h and hystart.h how a flow starts and goes on after
 * a pause.
 *
 * Parameters come from the rule of the flow, at every ACK, so a changed policy
 * changes live flows within a round trip. A flow whose rule does not give it this law
 * (its program chose it) gets the law's initial parameters, one whose parameters are
 * out of range gets Reno, and is counted.
 *
 * Start reading at LAW(), at the end.
 */
#include "include/count_ack.h"
#include "include/going_polite.h"
#include "include/pacing.h"
#include "include/phase_flow.h"
#include "include/shared_rate.h"

/* law_state.flags, in addition to those of law_flow.h */
#define LAW_GOING_POLITE 4u /* the flow was rude: see going_polite.h */

static __always_inline int is_flagged(struct tcp_sock *tp, u32 flag)
{
	return !!(state_of(tp)->flags & flag);
}

/* Recovery sends as much as arrives; after a timeout slow start begins with one segment. */
static __always_inline void bound_burst(struct tcp_sock *tp, const struct fp_rule *rule)
{
	u32 most_pkts = rule ? rule->value[FP_MAX_BURST] : 0;
	struct cc_window w;

	flag(tp, LAW_MAX_BURST, most_pkts);
	flag(tp, LAW_PHASES, rule && rule->has_phases);
	if (!most_pkts || ca_state(tp) > TCP_CA_DISORDER)
		return;
	w = window_of(tp);
	cc_bound_burst(&w, most_pkts, in_flight_pkts(tp));
	set_window(tp, &w);
}

/* A window of which a part was held back was not used, and does not grow (RFC 7661). */
static __always_inline int is_window_used(struct tcp_sock *tp)
{
	return is_cwnd_limited(tp) && !is_flagged(tp, LAW_HELD_BACK);
}

static __always_inline void grow_by(struct sock *sk, const struct fp_rule *rule, u32 acked_pkts)
{
	struct law_ack ack = { .acked_pkts = acked_pkts };
	struct tcp_sock *tp = tcp(sk);
	struct cc_window w;

	count_ack(sk, tp->snd_cwnd < tp->snd_ssthresh);
	ack.start = start_of(rule, tp);
	flag(tp, LAW_HYSTART, ack.start.hystart);
	if (!use_law(sk, rule, &ack.use))
		ack.use.law = CC_LAW_reno;
	w = window_of(tp);
	grow(&w, &ack);
	set_window(tp, &w);
}

SEC("struct_ops")
void BPF_PROG(law_cong_avoid, struct sock *sk, u32 ack, u32 acked_pkts)
{
	struct tcp_sock *tp = tcp(sk);
	int is_used = is_window_used(tp);
	struct fp_rule *rule;

	if (is_flagged(tp, LAW_GOING_POLITE)) {
		flag(tp, LAW_GOING_POLITE, going_polite_acked(sk, acked_pkts));
		return;
	}
	if (!is_used && !is_flagged(tp, LAW_MAX_BURST))
		return;
	rule = rule_of(sk);
	if (is_used)
		grow_by(sk, rule, acked_pkts);
	bound_burst(tp, rule);
}

static __always_inline u32 ssthresh_of(struct sock *sk, u32 cwnd_pkts)
{
	struct tcp_sock *tp = tcp(sk);
	struct law_in_use use = {};
	struct cc_window w;
	u32 ssthresh_pkts;

	if (is_flagged(tp, LAW_GOING_POLITE))
		return going_polite_ssthresh(sk);
	if (!use_law(sk, rule_of(sk), &use))
		use.law = CC_LAW_reno;
	w = window_of(tp);
	w.cwnd_pkts = cwnd_pkts;
	ssthresh_pkts = reduce(&w, &use, tp->packets_out);
	state_of(tp)->memory = w.memory;
	return ssthresh_pkts;
}

SEC("struct_ops")
u32 BPF_PROG(law_ssthresh, struct sock *sk)
{
	return ssthresh_of(sk, whole_cwnd_pkts(tcp(sk)));
}

/* tcp_simple_retransmit(), for a path whose MTU has shrunk, enters Loss and lowers nothing. */
static __always_inline int is_reduced(struct tcp_sock *tp)
{
	u32 state = ca_state(tp);

	return state == TCP_CA_CWR || (state > TCP_CA_CWR && tp->undo_marker);
}

/* As tcp_reno_undo_cwnd(); the law's memory goes back too. */
static __always_inline u32 undone_cwnd_pkts(struct sock *sk, u32 cwnd_pkts)
{
	struct tcp_sock *tp = tcp(sk);
	enum cc_law law = take_law(sk, number_given(rule_of(sk)));
	struct cc_window w = window_of(tp);

	w.cwnd_pkts = cwnd_pkts;
	cwnd_pkts = cc_undo_cwnd(law, &w, tp->prior_cwnd);
	if (is_flagged(tp, LAW_GOING_POLITE))
		going_polite_undone(sk);
	state_of(tp)->memory = w.memory;
	return cwnd_pkts;
}

SEC("struct_ops")
u32 BPF_PROG(law_undo_cwnd, struct sock *sk)
{
	return undone_cwnd_pkts(sk, tcp(sk)->snd_cwnd);
}

/* tcp_undo_cwnd_reduction() */
static __always_inline int is_undone(const struct tcp_sock *tp)
{
	return tp->prior_ssthresh && !tp->undo_marker;
}

/*
 * There are kernels that leave calls of ours out, and take what lies on the stack for the
 * answer (docs/kernel.md). A window or threshold that no law gives is made good at the
 * next ACK, before recovery goes on with it.
 */
static __always_inline void make_good(struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	u32 most_pkts = max_window_pkts(tp);
	int is_too_large = tp->prior_cwnd && tp->snd_cwnd > most_pkts;

	if (is_too_large && is_undone(tp)) {
		tp->snd_cwnd = undone_cwnd_pkts(sk, 0);
		return;
	}
	if (tp->snd_ssthresh > most_pkts && (is_too_large || is_reduced(tp)))
		tp->snd_ssthresh = ssthresh_of(sk, tp->prior_cwnd);
	if (is_too_large)
		tp->snd_cwnd = tp->snd_ssthresh;
}

/* What may be left of pacing was for a paced start, for a rule's pacing_rate or for a law before this. */
static __always_inline int is_start_paced(struct sock *sk)
{
	return !!state_of(tcp(sk))->memory.paced_from_pkts;
}

/*
 * A law that ran before may have left a rate of its own, which would hold this one back, and TSO goes
 * by the rate: until the next ACK it is that of tcp_update_pacing_rate() in slow start, 2 cwnd a round trip,
 * of the initial window that the rule gives right after the law.
 */
static __always_inline u64 unheld_bytes_per_s(struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct fp_rule *rule = rule_of(sk);
	u32 first_pkts = rule ? restart_window_pkts(rule, 0) : 0;
	u64 window_pkts = tp->snd_cwnd > first_pkts ? tp->snd_cwnd : first_pkts;
	u64 window_bytes = window_pkts * tp->mss_cache, rate;

	rate = tp->srtt_us ? window_bytes * 2 * 8000000 / tp->srtt_us : ~0ull;
	return rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

SEC("struct_ops")
void BPF_PROG(law_init, struct sock *sk)
{
	struct law_state none = {};

	*state_of(tcp(sk)) = none;
	/* What is kept of a phase is another law's, or of another connection. */
	bpf_sk_storage_delete(&kept_phases, sk);
	flag(tcp(sk), LAW_GOING_POLITE, is_going_polite(sk));
	sk->sk_pacing_rate = unheld_bytes_per_s(sk);
	unpace(sk);
}

static __always_inline void go_polite(struct sock *sk)
{
	if (!is_flagged(tcp(sk), LAW_GOING_POLITE))
		return;
	flag(tcp(sk), LAW_GOING_POLITE, 0);
	end_going_polite(sk);
}

/*
 * The next law finds neither pacing of ours, which it would not end, nor a window that
 * was to be paced.
 */
SEC("struct_ops")
void BPF_PROG(law_release, struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_window w = window_of(tp);

	/* A start that goes on would keep a window that no acknowledgement has confirmed. */
	w.memory.flags &= ~CC_RESUMES;
	cc_ack_arrived(&w, tp->packets_out);
	set_window(tp, &w);
	go_polite(sk);
	if (is_paced_by_law(sk))
		sk->sk_pacing_status = SK_PACING_NONE;
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

/*
 * The pause may be longer than the RTO, and the kernel may have lowered the window
 * already (tcp_slow_start_after_idle): the rule decides anew.
 */
static __always_inline void go_on_after_pause(struct tcp_sock *tp, const struct fp_rule *rule,
					      const struct cc_start *start, struct cc_window *w)
{
	u32 before_pkts = state_of(tp)->before_pause_pkts;
	u32 idle_ticks = (u32)bpf_jiffies64() - tp->lsndtime;
	u32 rto_ticks = tp->inet_conn.icsk_rto;
	u32 kernels_pkts = 0;

	if (idle_ticks <= rto_ticks)
		return;
	if (before_pkts) {
		kernels_pkts = w->cwnd_pkts;
		w->cwnd_pkts = before_pkts;
	}
	/* Only the ratio of the two times counts. */
	cc_idle_restart(w, start, idle_ticks, rto_ticks, restart_window_pkts(rule, kernels_pkts));
}

/* Nothing is in flight, and a segment is about to leave. */
static __always_inline void transmission_starts(struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct fp_rule *rule = rule_of(sk);
	struct cc_start start = start_of(rule, tp);
	struct cc_window w = window_of(tp);
	u64 rate_bytes_per_s = 0;

	if (start.initial_rate_bps && is_start_unchecked(sk))
		start.initial_rate_bps = 0;
	if (!tp->data_segs_out)
		begin(&w, &start);
	else
		w.memory.flags |= CC_BEGAN;
	if (rule && rule->value[FP_AFTER_IDLE] && tp->data_segs_out)
		go_on_after_pause(tp, rule, &start, &w);
	if (is_syn_lost(tp))
		w.memory.flags |= CC_BEGAN;
	else
		rate_bytes_per_s =
			cc_transmission_starts(&w, &start, tp->srtt_us >> 3, tp->mss_cache);
	set_window(tp, &w);
	flag(tp, LAW_HYSTART, start.hystart);
	bound_burst(tp, rule);
	if (rate_bytes_per_s)
		pace(sk, rate_bytes_per_s);
}

static __always_inline void end_burst_bound(struct tcp_sock *tp)
{
	u32 held_back_pkts = state_of(tp)->memory.held_back_pkts;
	struct cc_window w;

	flag(tp, LAW_HELD_BACK, held_back_pkts);
	if (!held_back_pkts)
		return;
	w = window_of(tp);
	set_window(tp, &w);
}

/* The kernel may say so again for every write before the first segment leaves. */
static __always_inline void window_is_restarted(struct tcp_sock *tp)
{
	end_burst_bound(tp);
	if (!state_of(tp)->before_pause_pkts)
		state_of(tp)->before_pause_pkts = tp->snd_cwnd;
}

/* In recovery nothing in flight means that all was lost, and the window is the kernel's. */
static __always_inline int is_open(struct tcp_sock *tp)
{
	return ca_state(tp) == TCP_CA_OPEN;
}

SEC("struct_ops")
void BPF_PROG(law_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp(sk);

	/* A timeout takes R below F. */
	if (event == CA_EVENT_LOSS)
		go_polite(sk);
	if (event == CA_EVENT_CWND_RESTART)
		window_is_restarted(tp);
	if (event != CA_EVENT_TX_START)
		return;
	keep(sk, cookie_of(tp));
	follow_phase(sk);
	/* Or it would go on at the rate of before until the first acknowledgement. */
	if (follow_shared_rate(sk, 1))
		sk->sk_pacing_rate = unheld_bytes_per_s(sk);
	if (!is_start_paced(sk))
		unpace(sk);
	if (is_open(tp))
		transmission_starts(sk);
	state_of(tp)->before_pause_pkts = 0;
}

static __always_inline void learn(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_start start = { .hystart = is_flagged(tp, LAW_HYSTART) };
	struct cc_window w;

	if (!start.hystart && !state_of(tp)->memory.paced_from_pkts)
		return;
	if (start.hystart && tp->snd_cwnd < tp->snd_ssthresh)
		start.known = known_path(sk);
	w = window_of(tp);
	cc_ack_arrived(&w, tp->packets_out + sample->pkts_acked);
	if (sample->rtt_us > 0)
		cc_rtt_sample(&w, &start, sample->rtt_us, tp->snd_una, tp->snd_nxt);
	set_window(tp, &w);
}

/*
 * An ACK, before recovery and cong_avoid; one that only opens the peer's window tells
 * nothing of the path.
 */
SEC("struct_ops")
void BPF_PROG(law_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	end_burst_bound(tcp(sk));
	make_good(sk);
	if (sample->pkts_acked || sample->rtt_us > 0)
		learn(sk, sample);
	if (is_flagged(tcp(sk), LAW_PHASES))
		follow_phase(sk);
	follow_shared_rate(sk, 0);
	if (!is_start_paced(sk))
		unpace(sk);
}

/* Registers a law of CC_LAWS as fp_LAW: the programs know it by its name. */
#define LAW(law)                                                                                   \
	SEC(".struct_ops")                                                                         \
	struct tcp_congestion_ops fp_##law = {                                                     \
		.init = (void *)law_init,                                                          \
		.release = (void *)law_release,                                                    \
		.cong_avoid = (void *)law_cong_avoid,                                              \
		.ssthresh = (void *)law_ssthresh,                                                  \
		.undo_cwnd = (void *)law_undo_cwnd,                                                \
		.cwnd_event = (void *)law_cwnd_event,                                              \
		.pkts_acked = (void *)law_pkts_acked,                                              \
		.name = "fp_" #law,                                                                \
	};
CC_LAWS(LAW)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
