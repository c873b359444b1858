/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mark of rude flows: every segment that leaves, be it data, retransmission, ACK or
 * FIN, carries the bits and the DSCP of fp_rude_gate, and leaves without ECT (mark.h). A
 * polite flow's is as it was.
 *
 * tc egress, where a segment of TSO is still one: what cuts it up copies its header. The
 * bits change neither a length nor a port; the checksum is corrected where there is one,
 * and left to whoever makes it where there is none yet (CHECKSUM_PARTIAL).
 *
 * Other filters of the interface see the packet after this one, whatever it did.
 * Start reading at mark().
 */
#include "include/kernel.h"
#include "include/maps.h"
#include "include/mark.h"

/* The flow, if its segments are to be marked. Segments that are passed on belong to nobody here. */
static __always_inline struct fp_rude_flow *rude_flow(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct fp_rude_flow *flow;

	if (!sk)
		return NULL;
	flow = bpf_sk_storage_get(&fp_rudes, sk, NULL, 0);
	return flow && flow->mode != FP_POLITE ? flow : NULL;
}

static __always_inline int mark(struct __sk_buff *skb, int has_ethernet)
{
	struct fp_rude_flow *flow = rude_flow(skb);
	struct fp_rude_gate *gate;
	u32 zero = 0;

	if (!flow)
		return TC_ACT_UNSPEC;
	gate = bpf_map_lookup_elem(&fp_rude_gate, &zero);
	if (gate && !mark_packet(skb, has_ethernet, gate, flow->mode))
		flow->marked_pkts += skb->gso_segs ? skb->gso_segs : 1;
	return TC_ACT_UNSPEC;
}

SEC("tc")
int mark_ethernet(struct __sk_buff *skb)
{
	return mark(skb, 1);
}

/* For devices whose packets begin with IP. */
SEC("tc")
int mark_bare(struct __sk_buff *skb)
{
	return mark(skb, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
