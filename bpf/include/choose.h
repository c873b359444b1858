/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which flows are sampled: those that user space configured, up to its bounds. Start at
 * is_wanted() and admit().
 */
#ifndef FATPATH_CHOOSE_H
#define FATPATH_CHOOSE_H

#include "match.h"
#include "new_flow.h"

FP_ARRAY(fp_instruments, 1, struct fp_instruments);
FP_ARRAY(fp_tracked, 1, u64); /* flows that are sampled now */

/* Key: a peer's /24, as ::ffff:a.b.c.0, or /64. */
struct prefix {
	u8 address[16];
};

/* Flows that are sampled now, of each prefix, while these are bounded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct prefix);
	__type(value, u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_tracked_of_prefix SEC(".maps");

static __always_inline struct fp_instruments *instruments(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&fp_instruments, &zero);
}

static __always_inline void prefix_of(struct tcp_sock *tp, struct prefix *prefix)
{
	u8 local[16];
	int is_v4;

	addresses(tp, local, prefix->address);
	is_v4 = !*(u64 *)prefix->address && *(u32 *)(prefix->address + 8) == bpf_htonl(0xffff);
	if (is_v4)
		prefix->address[15] = 0;
	else
		__builtin_memset(prefix->address + 8, 0, 8);
}

/* 1 = the prefix is below its bound, and the flow is counted there. */
static __always_inline int enter_prefix(struct tcp_sock *tp, u32 most)
{
	struct prefix prefix = {};
	u64 first = 1, *flows;

	prefix_of(tp, &prefix);
	flows = bpf_map_lookup_elem(&fp_tracked_of_prefix, &prefix);
	if (!flows)
		return !bpf_map_update_elem(&fp_tracked_of_prefix, &prefix, &first, BPF_NOEXIST);
	if (__sync_fetch_and_add(flows, 1) < most)
		return 1;
	__sync_fetch_and_add(flows, -1ull);
	return 0;
}

/* A flow that enters at the same moment may lose its place in the number: one too many is let in later. */
static __always_inline void leave_prefix(struct tcp_sock *tp)
{
	struct prefix prefix = {};
	u64 *flows;

	prefix_of(tp, &prefix);
	flows = bpf_map_lookup_elem(&fp_tracked_of_prefix, &prefix);
	if (flows && __sync_fetch_and_add(flows, -1ull) <= 1)
		bpf_map_delete_elem(&fp_tracked_of_prefix, &prefix);
}

static __always_inline int enter_all(u32 most)
{
	u32 zero = 0;
	u64 *flows = bpf_map_lookup_elem(&fp_tracked, &zero);

	if (!flows)
		return 0;
	if (__sync_fetch_and_add(flows, 1) < most)
		return 1;
	__sync_fetch_and_add(flows, -1ull);
	return 0;
}

static __always_inline int is_any_tracked(void)
{
	u32 zero = 0;
	u64 *flows = bpf_map_lookup_elem(&fp_tracked, &zero);

	return flows && *flows;
}

static __always_inline void leave_all(void)
{
	u32 zero = 0;
	u64 *flows = bpf_map_lookup_elem(&fp_tracked, &zero);

	if (flows)
		__sync_fetch_and_add(flows, -1ull);
}

/* Counts one more sampled flow. Returns its FP_ESTATS_ flags, or 0: a bound is reached. */
static __always_inline u32 admit(const struct fp_instruments *config, struct tcp_sock *tp)
{
	u32 flags = FP_ESTATS_TRACKED;

	if (!enter_all(config->max_flows))
		return 0;
	if (!config->max_flows_per_prefix)
		return flags;
	if (enter_prefix(tp, config->max_flows_per_prefix))
		return flags | FP_ESTATS_IN_PREFIX;
	leave_all();
	return 0;
}

/* `flags` are FP_ESTATS_ ones of the flow. */
static __always_inline void release(u32 *flags, struct tcp_sock *tp)
{
	if (!(*flags & FP_ESTATS_TRACKED))
		return;
	leave_all();
	if (*flags & FP_ESTATS_IN_PREFIX)
		leave_prefix(tp);
	*flags &= ~(FP_ESTATS_TRACKED | FP_ESTATS_IN_PREFIX);
}

/* Multiplied by the golden ratio, neighbours' cookies (both ends on one host) fall apart. */
static __always_inline int is_one_of(u64 cookie, u32 one_in)
{
	return one_in <= 1 || (cookie * 0x9e3779b97f4a7c15ull >> 32) % one_in == 0;
}

/* The rule of a flow, and its fp_flow.flags. */
struct met {
	u32 rule_id; /* FP_NO_RULE: it matched none */
	u32 flags;
	u32 is_kept; /* it has storage of its own */
};

/* `flow` is its storage, or NULL. */
static __always_inline struct met met_by(const struct fp_flow *flow, u64 cookie)
{
	u64 both = flow ? (u64)flow->flags << 32 | flow->rule_id : rule_and_flags_of(cookie);
	struct met met = { .rule_id = both, .flags = both >> 32, .is_kept = !!flow };

	return met;
}

static __always_inline struct met met_of(void *sk, u64 cookie)
{
	return met_by(bpf_sk_storage_get(&fp_flows, sk, NULL, 0), cookie);
}

static __always_inline int is_on_rule(const struct fp_instruments *config, u32 id)
{
	u32 word = id / 64;

	barrier_var(word); /* before the mask, which clang would leave out */
	return id < FP_MAX_RULE_IDS && config->rules[word & (FP_RULE_ID_WORDS - 1)] >> id % 64 & 1;
}

/* Whether the configuration names the flow, whatever the bounds. */
static __always_inline int is_wanted(const struct fp_instruments *config, void *sk, u64 cookie)
{
	if (config->sampled == FP_SAMPLED_NONE || !is_one_of(cookie, config->one_in))
		return 0;
	if (config->sampled == FP_SAMPLED_ALL)
		return 1;
	return is_on_rule(config, met_of(sk, cookie).rule_id);
}

#endif
