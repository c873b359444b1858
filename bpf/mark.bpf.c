/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mark of rude flows: every segment that leaves, be it data, retransmission, ACK or
 * FIN, carries the bits and the DSCP of fp_rude_gate. A polite flow's never does.
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
#include "include/packet.h"

/* What fatpath did to which interface: written before, so that it can be undone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fp_interface);
	__type(value, struct fp_mark);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_marks SEC(".maps");

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

static __always_inline int set_bits(struct __sk_buff *skb, const struct packet *p, u16 bits)
{
	__be16 before = bpf_htons(p->flags);
	__be16 after = bpf_htons(p->flags | bits);

	if (before == after)
		return 0;
	return bpf_l4_csum_replace(skb, p->tcp + TCP_CHECKSUM_AT, before, after, sizeof(after)) ||
	       bpf_skb_store_bytes(skb, p->tcp + TCP_FLAGS_AT, &after, sizeof(after), 0);
}

/* The traffic class lies across IPv6's first two bytes, and is IPv4's second. */
static __always_inline int set_dscp(struct __sk_buff *skb, const struct packet *p, u32 dscp)
{
	u16 class = dscp << 2 | (p->traffic_class & 3);
	__be16 before, after;

	if (class == p->traffic_class)
		return 0;
	if (bpf_skb_load_bytes(skb, p->ip, &before, sizeof(before)))
		return -1;
	if (p->version == 4) {
		after = bpf_htons((bpf_ntohs(before) & 0xff00) | class);
		if (bpf_l3_csum_replace(skb, p->ip + offsetof(struct ipv4_header, checksum), before,
					after, sizeof(after)))
			return -1;
	} else {
		after = bpf_htons((bpf_ntohs(before) & 0xf00f) | class << 4);
	}
	return bpf_skb_store_bytes(skb, p->ip, &after, sizeof(after), 0);
}

/* 0 = the packet carries all of the mark that can be in it. */
static __always_inline int set_mark(struct __sk_buff *skb, const struct packet *p,
				    enum packet_kind kind, const struct fp_rude_gate *gate)
{
	u16 bits = gate->mark_bits & FP_MARK_BITS;
	u32 dscp = gate->mark_dscp & 63;

	if (kind != PACKET_TCP && kind != PACKET_LATER_FRAGMENT)
		return -1;
	if (!bits && !dscp)
		return -1;
	/* Whoever checks what IPsec signed would drop it. */
	if (bits && kind == PACKET_TCP && (p->is_authenticated || set_bits(skb, p, bits)))
		return -1;
	return dscp ? set_dscp(skb, p, dscp) : 0;
}

static __always_inline int mark(struct __sk_buff *skb, int has_ethernet)
{
	struct fp_rude_flow *flow = rude_flow(skb);
	struct fp_rude_gate *gate;
	enum packet_kind kind;
	struct packet p;
	u32 zero = 0;

	if (!flow)
		return TC_ACT_UNSPEC;
	gate = bpf_map_lookup_elem(&fp_rude_gate, &zero);
	kind = packet_read(skb, PACKET_IN_SKB, has_ethernet, &p);
	if (gate && !set_mark(skb, &p, kind, gate))
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
