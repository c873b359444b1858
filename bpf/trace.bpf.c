/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the adapter (laws.bpf.c) meets on a real flow: before each acknowledgement the
 * flow's window and memory, and what the kernel goes by when it calls the law. Only
 * crates/kernel/tests/traced_flow.rs loads it; it changes nothing.
 */
#include "include/kernel.h"
#include "cc/laws.h"

/*
 * The test has the twin. The kernel's clock goes on when it sends: `now_us` is what CUBIC, the one law
 * that asks for it, found at the last acknowledgement.
 */
struct step {
	struct cc_window window;
	u32 delivered_pkts;
	u32 snd_una;
	u32 max_packets_out; /* the most in flight, of late */
	u32 is_cwnd_limited; /* the window held the flow back, of late */
	u32 ca_state;
	u32 tlp_high_seq; /* not 0: a tail loss probe is not answered */
	u32 local_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} steps SEC(".maps");

static __always_inline void fill(struct step *s, struct tcp_sock *tp)
{
	__builtin_memset(s, 0, sizeof(*s));
	s->window.cwnd_pkts = tp->snd_cwnd;
	s->window.ssthresh_pkts = tp->snd_ssthresh;
	s->window.clamp_pkts = tp->snd_cwnd_clamp;
	s->window.srtt_us = tp->srtt_us >> 3;
	bpf_probe_read_kernel(&s->window.memory, sizeof(s->window.memory),
			      tp->inet_conn.icsk_ca_priv);
	s->window.now_us = 1000ull * cc_cubic_state(&s->window)->acked_ms;
	s->delivered_pkts = tp->delivered;
	s->snd_una = tp->snd_una;
	s->max_packets_out = tp->max_packets_out;
	s->is_cwnd_limited = BPF_CORE_READ_BITFIELD_PROBED(tp, is_cwnd_limited);
	s->ca_state = BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state);
	s->tlp_high_seq = tp->tlp_high_seq;
	s->local_port = tp->inet_conn.icsk_inet.sk.__sk_common.skc_num;
}

static __always_inline int has_law_of_ours(struct tcp_sock *tp)
{
	char name[4] = {};

	bpf_probe_read_kernel(name, 3, &tp->inet_conn.icsk_ca_ops->name);
	return name[0] == 'f' && name[1] == 'p' && name[2] == '_';
}

/* At the beginning of tcp_rcv_established(). */
SEC("tp_btf/tcp_probe")
int BPF_PROG(trace, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	struct step *s;

	if (!tp || !has_law_of_ours(tp))
		return 0;
	s = bpf_ringbuf_reserve(&steps, sizeof(*s), 0);
	if (!s)
		return 0;
	fill(s, tp);
	bpf_ringbuf_submit(s, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
