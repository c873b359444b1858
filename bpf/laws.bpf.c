/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter between the kernel's tcp_sock and the laws of cc/: struct_ops
 * congestion control. The kernel keeps recovery (PRR, RACK, undo); a law says how
 * the window grows and what is left of it after a congestion event.
 *
 * Parameters come from the rule of the flow, at every ACK, so a changed policy
 * changes live flows within a round trip. A flow with no rule, or with
 * parameters out of range, gets Reno's.
 */
#include "include/kernel.h"
#include "include/maps.h"
#include "cc/laws.h"

/* In icsk_ca_priv. */
struct law_state {
	struct cc_memory memory;
};

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct law_state *state_of(struct tcp_sock *tp)
{
	return (struct law_state *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline struct fp_rule *rule_of(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	return flow ? bpf_map_lookup_elem(&fp_rules, &flow->rule_id) : NULL;
}

/* law_params[0] = a, [1] = b, both in thousandths. */
static __always_inline struct cc_aimd aimd_params(struct sock *sk)
{
	struct cc_aimd reno = { .a_milli = 1000, .b_milli = 500 };
	struct fp_rule *rule = rule_of(sk);
	struct cc_aimd p;

	if (!rule || !(rule->given & (1u << FP_LAW)))
		return reno;
	p.a_milli = rule->law_params[0];
	p.b_milli = rule->law_params[1];
	if (cc_aimd_is_in_range(&p))
		return p;
	count(FP_COUNT_BAD_PARAMS);
	return reno;
}

static __always_inline struct cc_window window_of(struct tcp_sock *tp)
{
	struct cc_window w = {
		.cwnd_pkts = tp->snd_cwnd,
		.ssthresh_pkts = tp->snd_ssthresh,
		.clamp_pkts = tp->snd_cwnd_clamp,
		.memory = state_of(tp)->memory,
	};
	return w;
}

/* tcp_is_cwnd_limited(): a window that is not used does not grow (RFC 7661). */
static __always_inline int is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD_PROBED(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* A law that ran before may have left its own pacing rate, which would hold this one back. */
SEC("struct_ops")
void BPF_PROG(aimd_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);

	state_of(tp)->memory = (struct cc_memory){ 0 };
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
}

SEC("struct_ops")
void BPF_PROG(aimd_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_start start = { 0 };
	struct cc_aimd params;
	struct cc_window w;

	if (!is_cwnd_limited(tp))
		return;
	params = aimd_params(sk);
	w = window_of(tp);
	cc_acked(CC_LAW_aimd, (u32 *)&params, &start, &w, acked);
	tp->snd_cwnd = w.cwnd_pkts;
	state_of(tp)->memory = w.memory;
}

SEC("struct_ops")
u32 BPF_PROG(aimd_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_aimd params = aimd_params(sk);
	struct cc_window w = window_of(tp);
	u32 ssthresh = cc_ssthresh(CC_LAW_aimd, (u32 *)&params, &w);

	state_of(tp)->memory = w.memory;
	return ssthresh;
}

/* tcp_reno_undo_cwnd(): the loss was spurious, the window of before comes back. */
SEC("struct_ops")
u32 BPF_PROG(law_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops fp_aimd = {
	.init = (void *)aimd_init,
	.cong_avoid = (void *)aimd_cong_avoid,
	.ssthresh = (void *)aimd_ssthresh,
	.undo_cwnd = (void *)law_undo_cwnd,
	.name = "fp_aimd",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
