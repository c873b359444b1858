/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rate_laws.bpf.c, which tells what each law was asked and what it made of it. Only
 * crates/kernel/tests/traced_rate.rs loads it.
 */
#include "include/rate_flow.h"

/* The test has the twins. */
enum rate_question { BEGIN, ACKED, RECOVERY_BEGINS, UNDONE, TRANSMISSION_STARTS };
struct rate_step {
	struct cc_rate_flow flow; /* after it */
	struct cc_rate_sample sample;
	u32 question;  /* enum rate_question */
	u32 cwnd_pkts; /* before it */
	u32 local_port;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 25);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_rate_steps SEC(".maps");

static __always_inline void trace(struct sock *sk, u32 question, const struct cc_rate_flow *f,
				  const struct cc_rate_sample *sample)
{
	struct rate_step *step = bpf_ringbuf_reserve(&fp_rate_steps, sizeof(*step), 0);

	if (!step)
		return;
	__builtin_memset(step, 0, sizeof(*step));
	__builtin_memcpy(&step->flow, f, sizeof(*f));
	if (sample)
		__builtin_memcpy(&step->sample, sample, sizeof(*sample));
	step->question = question;
	step->cwnd_pkts = tcp(sk)->snd_cwnd;
	step->local_port = sk->__sk_common.skc_num;
	bpf_ringbuf_submit(step, 0);
}
#define TRACE(sk, question, flow, sample) trace(sk, question, flow, sample)

#include "rate_laws.bpf.c"
