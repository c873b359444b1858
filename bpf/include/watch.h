/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a router can tell of a flow that is not marked: how much it sends, how much of
 * that it retransmits, and its round-trip time. User space judges (crates/kernel/src/police/watch.rs).
 *
 * Only one direction of a connection is seen, so a retransmission is recognised by its sequence
 * numbers: it ends before what was the highest end some time ago. A segment that comes
 * sooner was reordered. The round-trip time is that from a SYN to the segment after it:
 * between the two lies the peer's answer.
 */
#ifndef FATPATH_WATCH_H
#define FATPATH_WATCH_H

#include "abi.h"
#include "packet.h"

/* The least recently seen flow leaves for a new one. Made small unless flows are watched. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fp_watched_flow);
	__type(value, struct fp_watched);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_watched SEC(".maps");

/* Until when all of a flow is dropped, CLOCK_MONOTONIC. User space writes it. Made small unless flows are watched. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fp_watched_flow);
	__type(value, u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_penalties SEC(".maps");

/*
 * Reordering on a path is over within a few milliseconds; a retransmission takes a
 * round trip, and where that is shorter half of it.
 */
#define REORDERED_NS (4 * 1000 * 1000ull)

static __always_inline u64 reordered_ns(const struct fp_watched *w)
{
	u64 half_ns = w->rtt_us * 500ull;

	return half_ns && half_ns < REORDERED_NS ? half_ns : REORDERED_NS;
}

static __always_inline int is_after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* A SYN begins a connection, also one with the addresses and ports of an earlier one. */
static __always_inline struct fp_watched *watched(const struct fp_watched_flow *flow, u32 sequence,
						  int is_syn, u64 now_ns)
{
	struct fp_watched fresh = {
		.checked_ns = now_ns,
		.highest_end = sequence,
		.recent_end = sequence,
		.settled_end = sequence,
	};
	struct fp_watched *w = bpf_map_lookup_elem(&fp_watched, flow);

	if (w && !is_syn)
		return w;
	bpf_map_update_elem(&fp_watched, flow, &fresh, BPF_ANY);
	return bpf_map_lookup_elem(&fp_watched, flow);
}

/* What a sender lost within a round trip it may answer at once (RFC 5348, 5.2). */
static __always_inline void watch_repeated(struct fp_watched *w, u32 bytes, u64 now_ns)
{
	w->repeated_bytes += bytes;
	if (now_ns - w->event_ns < w->rtt_us * 1000ull)
		return;
	w->event_ns = now_ns;
	w->loss_events++;
}

static __always_inline void watch_data(struct fp_watched *w, u32 end, u32 bytes, u64 now_ns)
{
	w->bytes += bytes;
	if (bytes > w->segment_bytes)
		w->segment_bytes = bytes;
	if (!is_after(end, w->settled_end))
		watch_repeated(w, bytes, now_ns);
	if (is_after(end, w->highest_end))
		w->highest_end = end;
	if (now_ns - w->checked_ns < reordered_ns(w))
		return;
	w->settled_end = w->recent_end;
	w->recent_end = w->highest_end;
	w->checked_ns = now_ns;
}

static __always_inline int is_penalized(const struct fp_watched_flow *flow, u64 now_ns)
{
	u64 *until_ns = bpf_map_lookup_elem(&fp_penalties, flow);

	return until_ns && *until_ns > now_ns;
}

/*
 * 1 = the flow has a penalty, and the segment is not counted. Processors may write at once: a count that is a
 * little off judges the same.
 */
static __always_inline int watch(void *ctx, enum packet_in in, const struct packet *p)
{
	u32 data_at = packet_data(p);
	struct packet_addresses addresses;
	struct fp_watched_flow flow;
	struct tcp_header tcp;
	u64 now_ns = bpf_ktime_get_ns();
	struct fp_watched *w;

	if (packet_load_addresses(ctx, in, p, &addresses) ||
	    packet_load(ctx, in, p->tcp, &tcp, sizeof(tcp)))
		return 0;
	__builtin_memcpy(flow.source, addresses.source, sizeof(flow.source));
	__builtin_memcpy(flow.destination, addresses.destination, sizeof(flow.destination));
	flow.source_port = tcp.source;
	flow.destination_port = tcp.destination;
	if (is_penalized(&flow, now_ns))
		return 1;
	w = watched(&flow, bpf_ntohl(tcp.sequence), p->flags & TCP_SYN, now_ns);
	if (!w)
		return 0;
	w->seen_ns = now_ns;
	if (p->flags & TCP_SYN) {
		w->syn_ns = now_ns;
	} else if (w->syn_ns) {
		w->rtt_us = (now_ns - w->syn_ns) / 1000;
		w->syn_ns = 0;
	}
	if (p->end > data_at)
		watch_data(w, bpf_ntohl(tcp.sequence) + p->end - data_at, p->end - data_at, now_ns);
	return 0;
}

#endif
