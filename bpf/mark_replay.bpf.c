/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * include/mark.h on a packet that nobody sent: only crates/kernel/tests/mark_packets.rs
 * loads it. What mark.bpf.c finds in the gate and in the flow stands in the packet's `cb`.
 */
#include "include/kernel.h"
#include "include/mark.h"

SEC("tc")
int replay_mark(struct __sk_buff *skb)
{
	struct fp_rude_gate gate = { .mark_bits = skb->cb[0], .mark_dscp = skb->cb[1] };

	return mark_packet(skb, 1, &gate, skb->cb[2]) ? 1 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
