/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was learned of a flow's path, where no rule of the policy file matches: the id of a rule with the path's
 * settings. User space changes one prefix at a time (crates/kernel/src/tune/paths.rs), and flows that live follow at
 * their next round trip. Start reading at learned_rule().
 */
#ifndef FATPATH_PATHS_H
#define FATPATH_PATHS_H

#include "../cc/hystart.h"
#include "match.h"

/* User space keeps it below FP_MAX_PATHS. The rest is for kernels whose full trie refuses to replace a value, too. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 2 * FP_MAX_PATHS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fp_path_key);
	__type(value, struct fp_path);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_paths SEC(".maps");

/* Another one after each change of fp_paths and before nobody needs to know of it; 0: no path is known. */
FP_ARRAY(fp_paths_version, 1, u64);

/* As fp_recent_addresses: here the version tells whether the trie has changed since. */
struct recent_path {
	u64 local[2];
	u64 remote[2];
	u64 version;
	u32 rule_id;
	u32 is_in_use; /* whoever interrupts that asks the trie */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RECENT_ADDRESSES);
	__type(key, u32);
	__type(value, struct recent_path);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_recent_paths SEC(".maps");

/* 0: no path is known. Read before the trie, so that what is kept is never newer than what it says. */
static __always_inline u64 paths_version(void)
{
	u32 zero = 0;
	volatile u64 *version = bpf_map_lookup_elem(&fp_paths_version, &zero);

	return version ? *version : 0;
}

static __always_inline u32 rule_in_trie(const struct fp_path_key *key)
{
	struct fp_path *path = bpf_map_lookup_elem(&fp_paths, key);

	return path ? path->rule_id : FP_NO_RULE;
}

static __always_inline int is_of(const struct recent_path *recent, const u64 local[2],
				 const u64 remote[2], u64 version)
{
	return recent->version == version && recent->remote[0] == remote[0] &&
	       recent->remote[1] == remote[1] && recent->local[0] == local[0] &&
	       recent->local[1] == local[1];
}

/* A global function: the verifier walks through it once. */
__noinline u32 rule_of_path(const struct fp_path_key *given, u64 version)
{
	struct recent_path *recent;
	struct fp_path_key key;
	u64 local[2], remote[2];
	u32 place, rule_id;

	if (!given)
		return FP_NO_RULE;
	/* Linux 6.1 takes no argument for a key. */
	key = *given;
	__builtin_memcpy(local, key.local, sizeof(local));
	__builtin_memcpy(remote, key.remote, sizeof(remote));
	place = recent_place(remote);
	recent = bpf_map_lookup_elem(&fp_recent_paths, &place);
	if (!recent || __sync_val_compare_and_swap(&recent->is_in_use, 0, 1))
		return rule_in_trie(&key);
	if (!is_of(recent, local, remote, version)) {
		recent->rule_id = rule_in_trie(&key);
		__builtin_memcpy(recent->local, local, sizeof(local));
		__builtin_memcpy(recent->remote, remote, sizeof(remote));
		recent->version = version;
	}
	rule_id = recent->rule_id;
	barrier();
	recent->is_in_use = 0;
	return rule_id;
}

static __always_inline void fill_path_key(struct fp_path_key *key, struct tcp_sock *tp)
{
	key->prefix_len = 8 * (sizeof(key->local) + sizeof(key->remote));
	addresses(tp, key->local, key->remote);
}

/* The id of the rule for what is known of the flow's path, or FP_NO_RULE. */
static __always_inline u32 learned_rule(struct tcp_sock *tp)
{
	struct fp_path_key key = {};
	u64 version = paths_version();

	if (!version)
		return FP_NO_RULE;
	fill_path_key(&key, tp);
	return rule_of_path(&key, version);
}

/* What the flow is to know of its path. */
static __always_inline void note_path(struct fp_flow *flow, const struct fp_path_key *key)
{
	struct fp_path *path = bpf_map_lookup_elem(&fp_paths, key);
	int is_known = path && bpf_ktime_get_ns() < path->known_until_ns;

	flow->base_rtt_us = is_known ? path->base_rtt_us : 0;
	flow->bdp_bytes = is_known ? path->bdp_bytes : 0;
}

/*
 * Whether a flow whose handshake took `rtt_us` may start at the rate that was known of its path: the knowledge is fresh,
 * the path is the same, and no other flow is about to do so (RFC 9959). One that met a queue may not: the capacity is
 * somebody else's now. The RFC allows ten times the RTT that is known, which it keeps from a whole connection, queues and
 * all. A global function, as above.
 */
__noinline u32 may_start_at_rate(const struct fp_path_key *given, u32 rtt_us)
{
	u64 now_ns = bpf_ktime_get_ns(), started_ns;
	struct fp_path_key key;
	struct fp_path *path;

	if (!given)
		return 0;
	key = *given;
	path = bpf_map_lookup_elem(&fp_paths, &key);
	if (!path || now_ns >= path->known_until_ns)
		return 0;
	if (rtt_us < path->base_rtt_us / 2 || cc_hystart_has_risen(rtt_us, path->base_rtt_us))
		return 0;
	started_ns = path->started_ns;
	if (started_ns && now_ns - started_ns < START_ROUND_TRIPS * 1000ull * path->base_rtt_us)
		return 0;
	return __sync_val_compare_and_swap(&path->started_ns, started_ns, now_ns) == started_ns;
}

#endif
