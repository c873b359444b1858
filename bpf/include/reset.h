/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A segment becomes two RSTs (RFC 9293, 3.10.7): one goes back, with the sequence number
 * that the sender acknowledged, one goes on in the segment's place, with its own. Each
 * is what its receiver expects next (RFC 5961, 3.2) unless the segment overtook another;
 * then the next marked segment does it.
 *
 * Only where the TCP header follows a plain IP header: behind options the addresses of
 * the checksum may be others (source routes), and a fragment has no end to number.
 */
#ifndef FATPATH_RESET_H
#define FATPATH_RESET_H

#include "kernel.h"
#include "packet.h"

/* What hosts send with (IANA, IP parameters): both RSTs begin here. */
#define RESET_TTL 64
/* The two bits of ECN: a RST is not ECN-capable (RFC 3168, 6.1.1). */
#define ECN_BITS 3
#define ETHER_ADDRESS_BYTES 6

/* To who sent `s`. The data of a segment without ACK, and its SYN and FIN, are acknowledged. */
static __always_inline struct tcp_header reset_back(const struct tcp_header *s, u16 flags,
						    u32 data_bytes)
{
	struct tcp_header h = { .source = s->destination, .destination = s->source };
	u32 bytes = data_bytes + !!(flags & TCP_SYN) + !!(flags & TCP_FIN);

	if (flags & TCP_ACK) {
		h.sequence = s->acknowledgement;
		h.flags = bpf_htons(5 << 12 | TCP_RST);
	} else {
		h.acknowledgement = bpf_htonl(bpf_ntohl(s->sequence) + bytes);
		h.flags = bpf_htons(5 << 12 | TCP_RST | TCP_ACK);
	}
	return h;
}

/* To whom `s` was sent. */
static __always_inline struct tcp_header reset_on(const struct tcp_header *s, u16 flags)
{
	struct tcp_header h = {
		.source = s->source,
		.destination = s->destination,
		.sequence = s->sequence,
		.acknowledgement = s->acknowledgement,
		.flags = bpf_htons(5 << 12 | TCP_RST | (flags & TCP_ACK)),
	};
	return h;
}

static __always_inline u16 folded(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Of the pseudo-header alone where the checksum is made later, at CHECKSUM_PARTIAL. */
static __always_inline u16 tcp_checksum(const struct packet_addresses *a, u8 version,
					const struct tcp_header *h, int is_partial)
{
	__be32 rest[2] = { bpf_htonl(sizeof(*h)), bpf_htonl(IPPROTO_TCP) };
	u32 sum = bpf_csum_diff(NULL, 0, rest, sizeof(rest), 0);

	/* The bytes before an IPv4 address in IPv6 (::ffff:) are none of the packet's. */
	if (version == 4) {
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(a->source + 12), 4, sum);
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(a->destination + 12), 4, sum);
	} else {
		sum = bpf_csum_diff(NULL, 0, (__be32 *)a, sizeof(*a), sum);
	}
	if (is_partial)
		return folded(sum);
	return ~folded(bpf_csum_diff(NULL, 0, (__be32 *)h, sizeof(*h), sum));
}

static __always_inline int store(struct __sk_buff *skb, u32 at, const void *from, u32 bytes)
{
	return bpf_skb_store_bytes(skb, at, from, bytes, BPF_F_RECOMPUTE_CSUM);
}

/* The packet goes the other way, and holds no more than a TCP header. */
static __always_inline int turn_ipv4(struct __sk_buff *skb, const struct packet *p)
{
	struct ipv4_header h;
	__be32 source;

	if (bpf_skb_load_bytes(skb, p->ip, &h, sizeof(h)))
		return -1;
	source = h.source;
	h.source = h.destination;
	h.destination = source;
	h.ttl = RESET_TTL;
	h.traffic_class &= ~ECN_BITS;
	h.total_bytes = bpf_htons(sizeof(h) + sizeof(struct tcp_header));
	h.checksum = 0;
	h.checksum = ~folded(bpf_csum_diff(NULL, 0, (__be32 *)&h, sizeof(h), 0));
	return store(skb, p->ip, &h, sizeof(h));
}

static __always_inline int turn_ipv6(struct __sk_buff *skb, const struct packet *p)
{
	struct ipv6_header h;
	u8 source[16];

	if (bpf_skb_load_bytes(skb, p->ip, &h, sizeof(h)))
		return -1;
	__builtin_memcpy(source, h.source, sizeof(source));
	__builtin_memcpy(h.source, h.destination, sizeof(source));
	__builtin_memcpy(h.destination, source, sizeof(source));
	h.hop_limit = RESET_TTL;
	h.version_class_label &= ~bpf_htonl(ECN_BITS << 20);
	h.payload_bytes = bpf_htons(sizeof(struct tcp_header));
	return store(skb, p->ip, &h, sizeof(h));
}

static __always_inline int turn_ethernet(struct __sk_buff *skb)
{
	u8 to_from[2 * ETHER_ADDRESS_BYTES], from_to[2 * ETHER_ADDRESS_BYTES];

	if (bpf_skb_load_bytes(skb, 0, to_from, sizeof(to_from)))
		return -1;
	__builtin_memcpy(from_to, to_from + ETHER_ADDRESS_BYTES, ETHER_ADDRESS_BYTES);
	__builtin_memcpy(from_to + ETHER_ADDRESS_BYTES, to_from, ETHER_ADDRESS_BYTES);
	return store(skb, 0, from_to, sizeof(from_to));
}

/* The packet goes the other way, with this TCP header. */
static __always_inline int turn(struct __sk_buff *skb, int has_ethernet, const struct packet *p,
				const struct packet_addresses *addresses, struct tcp_header *h)
{
	int is_partial =
		BPF_CORE_READ_BITFIELD_PROBED((struct sk_buff *)skb, ip_summed) == CHECKSUM_PARTIAL;

	h->checksum = tcp_checksum(addresses, p->version, h, is_partial);
	if (p->version == 4 ? turn_ipv4(skb, p) : turn_ipv6(skb, p))
		return -1;
	if (has_ethernet && turn_ethernet(skb))
		return -1;
	return store(skb, p->tcp, h, sizeof(*h));
}

/* TCP has one receiver (RFC 9293, 3.9.2.3): to many it is somebody's mischief, not to be answered. */
static __always_inline int is_to_many(const struct __sk_buff *skb)
{
	return skb->pkt_type == PACKET_BROADCAST || skb->pkt_type == PACKET_MULTICAST;
}

/* 0 = the packet is the RST that goes on, and the other is under way. */
static __always_inline int reset(struct __sk_buff *skb, int has_ethernet, const struct packet *p)
{
	struct packet_addresses addresses;
	struct tcp_header segment, h;
	u32 data_bytes = p->end - packet_data(p);

	if (!p->is_plain || is_to_many(skb) ||
	    packet_load_addresses(skb, PACKET_IN_SKB, p, &addresses) ||
	    bpf_skb_load_bytes(skb, p->tcp, &segment, sizeof(segment)) ||
	    bpf_skb_change_tail(skb, p->tcp + sizeof(h), 0))
		return -1;
	h = reset_back(&segment, p->flags, data_bytes);
	if (turn(skb, has_ethernet, p, &addresses, &h) || bpf_clone_redirect(skb, skb->ifindex, 0))
		return -1;
	h = reset_on(&segment, p->flags);
	return turn(skb, has_ethernet, p, &addresses, &h);
}

#endif
