/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The police of a router's interface: what becomes of marked segments that arrive there, and of
 * datagrams with the DSCP that marks.
 *
 * One police an interface, each with maps of its own; it lives without a daemon. At XDP
 * where the driver has it, else at tc ingress. A RST to both ends makes two packets of
 * one, which XDP cannot: `reset` is at tc always. An unmarked packet is never touched, unless
 * its flow has a penalty (watch.h), and neither is one that cannot be read.
 *
 * Start reading at police().
 */
#include "include/kernel.h"
#include "include/abi.h"
#include "include/packet.h"
#include "include/watch.h"
#include "include/reset.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_police);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_police SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FP_TALLIES);
	__type(key, u32);
	__type(value, struct fp_tally);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_police_tallies SEC(".maps");

/* Segments that each exception has let through, by prefix; FP_NOT_EXCEPTED where there is none. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fp_address_key);
	__type(value, u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_police_exceptions SEC(".maps");

/* When the next segment would leave, were the rate a link's. */
struct bucket {
	struct bpf_spin_lock lock;
	u32 pad;
	u64 next_ns;
	u64 rest; /* what the division left of a nanosecond, in parts of the rate */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct bucket);
} bucket SEC(".maps");

/* A burst is what the rate gives in this time: some flights of TSO at a few hundred Mb/s. */
#define BURST_NS (10 * 1000 * 1000ull)
#define NS_PER_S (1000 * 1000 * 1000ull)

/* Flows that are reset in a second; what comes on top is dropped, and comes again. */
#define RESETS_PER_S 1000

static __always_inline void tally(enum fp_police_tally which, u32 pkts, u32 bytes)
{
	u32 key = which;
	struct fp_tally *t = bpf_map_lookup_elem(&fp_police_tallies, &key);

	if (!t)
		return;
	t->pkts += pkts;
	t->bytes += bytes;
}

/* Bits are TCP's, so only in its header; a DSCP is also in fragments without one, and in UDP. */
static __always_inline int is_marked(const struct fp_police *how, enum packet_kind kind,
				     const struct packet *p)
{
	u16 bits = how->mark_bits & FP_MARK_BITS;

	if (bits)
		return kind == PACKET_TCP && (p->flags & bits) == bits;
	return how->mark_dscp &&
	       (kind == PACKET_TCP || kind == PACKET_LATER_FRAGMENT || kind == PACKET_UDP) &&
	       p->traffic_class >> 2 == how->mark_dscp;
}

static __always_inline int is_within(const u8 address[16], u32 pkts)
{
	struct fp_address_key key = { .prefix_len = 128 };
	u64 *passed;

	__builtin_memcpy(key.address, address, sizeof(key.address));
	passed = bpf_map_lookup_elem(&fp_police_exceptions, &key);
	if (!passed || *passed == FP_NOT_EXCEPTED)
		return 0;
	__sync_fetch_and_add(passed, pkts);
	return 1;
}

static __always_inline int is_excepted(void *ctx, enum packet_in in, const struct packet *p,
				       u32 pkts)
{
	struct packet_addresses addresses;

	if (packet_load_addresses(ctx, in, p, &addresses))
		return 0;
	return is_within(addresses.source, pkts) || is_within(addresses.destination, pkts);
}

/* The generic cell rate algorithm (ITU-T I.371): a token bucket that keeps a time. */
static __always_inline int fits(u64 amount, u64 per_s)
{
	u64 now_ns = bpf_ktime_get_ns(), cost;
	u32 zero = 0, is_early;
	struct bucket *b = bpf_map_lookup_elem(&bucket, &zero);

	if (!b || !per_s)
		return 0;
	bpf_spin_lock(&b->lock);
	is_early = b->next_ns > now_ns + BURST_NS;
	if (!is_early) {
		cost = amount * NS_PER_S + b->rest;
		b->next_ns = (b->next_ns > now_ns ? b->next_ns : now_ns) + cost / per_s;
		b->rest = cost % per_s;
	}
	bpf_spin_unlock(&b->lock);
	return !is_early;
}

/* A virtual machine's TSO does not say how many segments it makes, only how long they are. */
static __always_inline u32 segments(void *ctx, enum packet_in in, enum packet_kind kind,
				    const struct packet *p)
{
	struct __sk_buff *skb = ctx;
	u32 size, data_bytes;

	if (in != PACKET_IN_SKB || !skb->gso_size)
		return 1;
	size = skb->gso_size;
	/* A tunnel's datagram is longer by headers that this does not know. */
	if (kind != PACKET_TCP && skb->gso_segs)
		return skb->gso_segs;
	if (kind != PACKET_TCP && kind != PACKET_UDP)
		return 1;
	/* Of UDP nothing says that its header lies within the packet. */
	if (packet_header_bytes(kind, p) >= p->end)
		return 1;
	data_bytes = p->end - packet_header_bytes(kind, p);
	return data_bytes > size ? (data_bytes + size - 1) / size : 1;
}

static __always_inline int is_reset(struct __sk_buff *skb, const struct fp_police *how,
				    const struct packet *p)
{
	return fits(1, RESETS_PER_S) && !reset(skb, how->has_ethernet, p);
}

/* What becomes of a marked segment. */
static __always_inline enum fp_police_tally judge(void *ctx, enum packet_in in,
						  const struct fp_police *how,
						  enum packet_kind kind, const struct packet *p,
						  u32 bytes)
{
	switch (how->mode) {
	case FP_POLICE_DROP:
		return FP_TALLY_DROPPED;
	case FP_POLICE_LIMIT:
		return fits(bytes * 8ull, how->limit_bps) ? FP_TALLY_PASSED : FP_TALLY_DROPPED;
	case FP_POLICE_RESET:
		if (in != PACKET_IN_SKB)
			return FP_TALLY_DROPPED;
		if (kind == PACKET_TCP && p->flags & TCP_RST)
			return FP_TALLY_PASSED;
		return kind == PACKET_TCP && is_reset(ctx, how, p) ? FP_TALLY_RESET
								   : FP_TALLY_DROPPED;
	default:
		return FP_TALLY_PASSED;
	}
}

/* What is not marked passes, but for flows that do not slow down: where a penalty is asked for. */
static __always_inline enum fp_police_tally judge_unmarked(void *ctx, enum packet_in in,
							   const struct fp_police *how,
							   enum packet_kind kind,
							   const struct packet *p, u32 pkts)
{
	if (kind == PACKET_CUT)
		return FP_TALLY_CUT;
	if (!how->watches || kind != PACKET_TCP || !watch(ctx, in, p))
		return FP_TALLY_UNMARKED;
	return how->has_exceptions && is_excepted(ctx, in, p, pkts) ? FP_TALLY_UNMARKED
								    : FP_TALLY_PENALIZED;
}

/* 1 = the packet is dropped. */
static __always_inline int police(void *ctx, enum packet_in in)
{
	enum fp_police_tally verdict;
	enum packet_kind kind;
	struct fp_police *how;
	struct packet p;
	u32 zero = 0, bytes, pkts;

	how = bpf_map_lookup_elem(&fp_police, &zero);
	if (!how)
		return 0;
	kind = packet_read(ctx, in, how->has_ethernet, &p);
	pkts = segments(ctx, in, kind, &p);
	/* What makes segments of it gives each the headers. */
	bytes = packet_bytes(ctx, in) + (pkts - 1) * packet_header_bytes(kind, &p);
	if (!is_marked(how, kind, &p)) {
		verdict = judge_unmarked(ctx, in, how, kind, &p, pkts);
		tally(verdict, pkts, bytes);
		return verdict == FP_TALLY_PENALIZED;
	}
	tally(FP_TALLY_MARKED, pkts, bytes);
	if (how->has_exceptions && is_excepted(ctx, in, &p, pkts))
		verdict = FP_TALLY_EXCEPTED;
	else
		verdict = judge(ctx, in, how, kind, &p, bytes);
	tally(verdict, pkts, bytes);
	return verdict == FP_TALLY_DROPPED;
}

SEC("xdp.frags")
int police_xdp(struct xdp_md *xdp)
{
	return police(xdp, PACKET_IN_XDP) ? XDP_DROP : XDP_PASS;
}

SEC("tc")
int police_tc(struct __sk_buff *skb)
{
	return police(skb, PACKET_IN_SKB) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
