/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the TCP header of a packet: behind VLAN tags (802.1ad), IPv4 options, IPv6
 * extension headers and what BIG TCP adds. Of UDP it says only that it is UDP. The same
 * for packets of tc and of XDP.
 *
 * A header counts only when it lies whole within the IP packet, which lies within what
 * was received. What is cut, or lies about a length, is no TCP: it is never looked into.
 */
#ifndef FATPATH_PACKET_H
#define FATPATH_PACKET_H

#include "kernel.h"

/* Where a packet is, which decides how its bytes are read. */
enum packet_in {
	PACKET_IN_SKB,
	PACKET_IN_XDP,
};

enum packet_kind {
	PACKET_OTHER,	       /* neither TCP nor UDP */
	PACKET_TCP,	       /* with all of its TCP header, also as the first of fragments */
	PACKET_LATER_FRAGMENT, /* of TCP, without its header */
	PACKET_UDP,	       /* a datagram, or any fragment of one */
	PACKET_CUT,	       /* lies about its length, or of TCP and too short for it */
};

/* Offsets are bytes from where the packet begins; numbers are in host order. */
struct packet {
	u32 ip;
	u32 tcp;   /* of UDP: where its header would begin */
	u32 end;   /* of the IP packet: what follows is padding */
	u16 flags; /* the two bytes after the acknowledgement number */
	u8 version;
	u8 traffic_class;    /* DSCP, then two bits of ECN */
	u8 is_plain;	     /* neither options, extension headers nor fragments */
	u8 is_authenticated; /* by an AH (RFC 4302), which covers TCP's header, and no ECN or DSCP */
};

/* 802.1Q, and 802.1ad's outer tag. A third tag is somebody's own invention. */
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define MAX_VLAN_TAGS 2
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETHER_HEADER_BYTES 14

#define IP_OFFSET_MASK 0x1fff
#define IP_MORE_FRAGMENTS 0x2000
#define TCP_MIN_HEADER_BYTES 20
#define TCP_FLAGS_AT 12
#define TCP_CHECKSUM_AT 16
#define UDP_HEADER_BYTES 8

/* Extension headers (RFC 8200, 4). More than these in a row carry no TCP that anybody sends. */
#define IPV6_HOP_BY_HOP 0
#define IPV6_ROUTING 43
#define IPV6_FRAGMENT 44
#define IPV6_AUTHENTICATION 51
#define IPV6_DESTINATION 60
#define MAX_EXTENSIONS 6

struct ipv4_header {
	u8 version_length;
	u8 traffic_class;
	__be16 total_bytes;
	__be16 id;
	__be16 fragment;
	u8 ttl;
	u8 protocol;
	__be16 checksum;
	__be32 source;
	__be32 destination;
};

struct ipv6_header {
	__be32 version_class_label;
	__be16 payload_bytes;
	u8 next;
	u8 hop_limit;
	u8 source[16];
	u8 destination[16];
};

struct tcp_header {
	__be16 source;
	__be16 destination;
	__be32 sequence;
	__be32 acknowledgement;
	__be16 flags; /* and the header's length */
	__be16 window;
	u16 checksum;
	__be16 urgent;
};

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* IPv4 as ::ffff:a.b.c.d, as fp_address_key has it. */
struct packet_addresses {
	u8 source[16];
	u8 destination[16];
} __attribute__((aligned(4)));

struct ipv6_extension {
	u8 next;
	u8 length; /* in units of its kind */
	__be16 fragment;
};

static __always_inline int packet_load(void *ctx, enum packet_in in, u32 at, void *to, u32 bytes)
{
	return in == PACKET_IN_SKB ? bpf_skb_load_bytes(ctx, at, to, bytes)
				   : bpf_xdp_load_bytes(ctx, at, to, bytes);
}

static __always_inline u32 packet_bytes(void *ctx, enum packet_in in)
{
	return in == PACKET_IN_SKB ? ((struct __sk_buff *)ctx)->len : bpf_xdp_get_buff_len(ctx);
}

/* Of a packet with a whole IP header. */
static __always_inline int packet_load_addresses(void *ctx, enum packet_in in,
						 const struct packet *p, struct packet_addresses *a)
{
	struct packet_addresses mapped = {
		.source = { [10] = 0xff, 0xff },
		.destination = { [10] = 0xff, 0xff },
	};

	*a = mapped;
	if (p->version == 6)
		return packet_load(ctx, in, p->ip + offsetof(struct ipv6_header, source), a,
				   sizeof(*a));
	return packet_load(ctx, in, p->ip + offsetof(struct ipv4_header, source), a->source + 12,
			   4) ||
	       packet_load(ctx, in, p->ip + offsetof(struct ipv4_header, destination),
			   a->destination + 12, 4);
}

/* Where a TCP segment's data begins. */
static __always_inline u32 packet_data(const struct packet *p)
{
	return p->tcp + (p->flags >> 12) * 4;
}

/* Of what is in front of the data, in each of the packets that segmentation makes. */
static __always_inline u32 packet_header_bytes(enum packet_kind kind, const struct packet *p)
{
	return kind == PACKET_UDP ? p->tcp + UDP_HEADER_BYTES : packet_data(p);
}

static __always_inline int is_tcp_or_udp(u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

/* Puts the end of the IP packet into `p`; a length of 0 is one of BIG TCP's, only within a host. */
static __always_inline int packet_ends(void *ctx, enum packet_in in, struct packet *p, u32 ip_bytes)
{
	u32 bytes = packet_bytes(ctx, in);

	p->end = p->ip + ip_bytes;
	if (!ip_bytes && in == PACKET_IN_SKB && ((struct __sk_buff *)ctx)->gso_size)
		p->end = bytes;
	return p->end <= bytes && p->end > p->ip;
}

static __always_inline enum packet_kind packet_tcp(void *ctx, enum packet_in in, struct packet *p)
{
	__be16 flags;
	u32 header_bytes;

	if (p->tcp + TCP_MIN_HEADER_BYTES > p->end ||
	    packet_load(ctx, in, p->tcp + TCP_FLAGS_AT, &flags, sizeof(flags)))
		return PACKET_CUT;
	p->flags = bpf_ntohs(flags);
	header_bytes = (p->flags >> 12) * 4;
	if (header_bytes < TCP_MIN_HEADER_BYTES || p->tcp + header_bytes > p->end)
		return PACKET_CUT;
	return PACKET_TCP;
}

static __always_inline enum packet_kind packet_ipv4(void *ctx, enum packet_in in, struct packet *p)
{
	struct ipv4_header h;
	u32 header_bytes, fragment;

	if (packet_load(ctx, in, p->ip, &h, sizeof(h)) || h.version_length >> 4 != 4 ||
	    !is_tcp_or_udp(h.protocol))
		return PACKET_OTHER;
	header_bytes = (h.version_length & 15) * 4;
	fragment = bpf_ntohs(h.fragment);
	p->version = 4;
	p->traffic_class = h.traffic_class;
	if (header_bytes < sizeof(h) || !packet_ends(ctx, in, p, bpf_ntohs(h.total_bytes)))
		return PACKET_CUT;
	p->tcp = p->ip + header_bytes;
	if (h.protocol == IPPROTO_UDP)
		return PACKET_UDP;
	if (fragment & IP_OFFSET_MASK)
		return PACKET_LATER_FRAGMENT;
	p->is_plain = header_bytes == sizeof(h) && !(fragment & IP_MORE_FRAGMENTS);
	return packet_tcp(ctx, in, p);
}

static __always_inline int is_extension(u8 protocol)
{
	return protocol == IPV6_HOP_BY_HOP || protocol == IPV6_ROUTING ||
	       protocol == IPV6_FRAGMENT || protocol == IPV6_AUTHENTICATION ||
	       protocol == IPV6_DESTINATION;
}

static __always_inline u32 extension_bytes(u8 protocol, u8 length)
{
	if (protocol == IPV6_FRAGMENT)
		return 8;
	if (protocol == IPV6_AUTHENTICATION)
		return (length + 2) * 4;
	return (length + 1) * 8;
}

static __always_inline enum packet_kind packet_ipv6(void *ctx, enum packet_in in, struct packet *p)
{
	struct ipv6_extension extension;
	struct ipv6_header h;
	u32 payload_bytes, is_later = 0;
	u8 protocol;
	int i;

	if (packet_load(ctx, in, p->ip, &h, sizeof(h)) ||
	    bpf_ntohl(h.version_class_label) >> 28 != 6)
		return PACKET_OTHER;
	p->version = 6;
	p->traffic_class = bpf_ntohl(h.version_class_label) >> 20;
	p->tcp = p->ip + sizeof(h);
	protocol = h.next;
	for (i = 0; i < MAX_EXTENSIONS && is_extension(protocol) && !is_later; i++) {
		if (packet_load(ctx, in, p->tcp, &extension, sizeof(extension)))
			return PACKET_OTHER;
		if (protocol == IPV6_FRAGMENT)
			is_later = bpf_ntohs(extension.fragment) & 0xfff8;
		p->is_authenticated |= protocol == IPV6_AUTHENTICATION;
		p->tcp += extension_bytes(protocol, extension.length);
		protocol = extension.next;
	}
	if (!is_tcp_or_udp(protocol))
		return PACKET_OTHER;
	p->is_plain = h.next == IPPROTO_TCP;
	payload_bytes = bpf_ntohs(h.payload_bytes);
	if (!packet_ends(ctx, in, p, payload_bytes ? sizeof(h) + payload_bytes : 0))
		return PACKET_CUT;
	if (protocol == IPPROTO_UDP)
		return PACKET_UDP;
	return is_later ? PACKET_LATER_FRAGMENT : packet_tcp(ctx, in, p);
}

/* The kind of IP behind Ethernet's header and its tags; `p->ip` comes to lie there. */
static __always_inline u16 packet_ethernet(void *ctx, enum packet_in in, struct packet *p)
{
	__be16 protocol;
	int tags;

	p->ip = ETHER_HEADER_BYTES;
	for (tags = 0; tags <= MAX_VLAN_TAGS; tags++) {
		if (packet_load(ctx, in, p->ip - sizeof(protocol), &protocol, sizeof(protocol)))
			return 0;
		if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD))
			return bpf_ntohs(protocol);
		p->ip += 4;
	}
	return 0;
}

/* On a device without a header of its own (TUN, tunnels) the packet says itself what it is. */
static __always_inline u16 packet_bare(void *ctx, enum packet_in in)
{
	u8 version;

	if (packet_load(ctx, in, 0, &version, sizeof(version)))
		return 0;
	return version >> 4 == 4 ? ETH_P_IP : version >> 4 == 6 ? ETH_P_IPV6 : 0;
}

/* Fills `p` as far as the packet is TCP, or its IP header says UDP. */
static __always_inline enum packet_kind packet_read(void *ctx, enum packet_in in, int has_ethernet,
						    struct packet *p)
{
	struct packet none = {};
	u16 protocol;

	*p = none;
	protocol = has_ethernet ? packet_ethernet(ctx, in, p) : packet_bare(ctx, in);
	if (protocol == ETH_P_IP)
		return packet_ipv4(ctx, in, p);
	if (protocol == ETH_P_IPV6)
		return packet_ipv6(ctx, in, p);
	return PACKET_OTHER;
}

#endif
