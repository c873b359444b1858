/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is written into a packet of a flow that is rude or going polite: the bits and the DSCP of
 * fp_rude_gate, and while the flow is rude, no ECT. A packet in which no TCP is found stays
 * as it is. Start at mark_packet().
 */
#ifndef FATPATH_MARK_H
#define FATPATH_MARK_H

#include "abi.h"
#include "packet.h"

/* The ECN field (RFC 3168, 5): not ECT, ECT(1), ECT(0), CE. */
#define ECN_MASK 3
#define ECN_CE 3

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
static __always_inline int set_class(struct __sk_buff *skb, const struct packet *p, u8 class)
{
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

/*
 * ECT says that the sender slows down for CE (RFC 3168, 5): a rude flow does not, so queues
 * shall drop what they would have marked. One that goes polite does: its law and the
 * kernel's recovery are back. CE is not taken away: a queue of this host has said so.
 */
static __always_inline u8 class_of(const struct packet *p, u32 dscp, u32 mode)
{
	u8 ecn = p->traffic_class & ECN_MASK;

	if (mode == FP_RUDE && ecn != ECN_CE)
		ecn = 0;
	return (dscp ? dscp << 2 : p->traffic_class & ~ECN_MASK) | ecn;
}

/* `mode` is the flow's, enum fp_rude_mode. 0 = the packet carries all of the mark that can be in it. */
static __always_inline int mark_packet(struct __sk_buff *skb, int has_ethernet,
				       const struct fp_rude_gate *gate, u32 mode)
{
	u16 bits = gate->mark_bits & FP_MARK_BITS;
	u32 dscp = gate->mark_dscp & 63;
	enum packet_kind kind;
	struct packet p;

	kind = packet_read(skb, PACKET_IN_SKB, has_ethernet, &p);
	if (kind != PACKET_TCP && kind != PACKET_LATER_FRAGMENT)
		return -1;
	if (set_class(skb, &p, class_of(&p, dscp, mode)))
		return -1;
	if (!bits || kind != PACKET_TCP)
		return bits || dscp ? 0 : -1;
	/* Whoever checks what IPsec signed would drop it; the class is not signed (RFC 4302, 3.3.3). */
	return p.is_authenticated ? -1 : set_bits(skb, &p, bits);
}

#endif
