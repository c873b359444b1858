/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two windows of a flow that goes polite, before each acknowledgement. Only
 * crates/kernel/tests/going_polite.rs loads it; it changes nothing.
 */
#include "include/rude_flow.h"

/* The test has the twin. */
struct rude_step {
	u32 mode; /* enum fp_rude_mode */
	u32 ca_state;
	u32 r_pkts;
	u32 ssthresh_pkts;
	u32 fair_pkts;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} rude_steps SEC(".maps");

/* At the beginning of tcp_rcv_established(). */
SEC("tp_btf/tcp_probe")
int BPF_PROG(trace_rude, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	struct fp_rude_flow *flow = tp ? bpf_sk_storage_get(&fp_rudes, tp, NULL, 0) : NULL;
	struct rude_state *s = flow ? bpf_sk_storage_get(&fp_rude_states, tp, NULL, 0) : NULL;
	struct rude_step *step;

	if (!s)
		return 0;
	step = bpf_ringbuf_reserve(&rude_steps, sizeof(*step), 0);
	if (!step)
		return 0;
	step->mode = flow->mode;
	step->ca_state = BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state);
	step->r_pkts = tp->snd_cwnd;
	step->ssthresh_pkts = tp->snd_ssthresh;
	step->fair_pkts = s->rude.fair.cwnd_pkts;
	bpf_ringbuf_submit(step, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
