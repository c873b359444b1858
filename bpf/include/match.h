/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow meets the policy: which rule, if any, is the first in file order.
 *
 * Bit-vector classification: each dimension of a flow (destination, source,
 * ports, cgroup) is looked up on its own and gives the set of rules that it
 * satisfies; the lowest bit of the sets' intersection is the first match. The
 * cost is a trie walk and sixteen words, however many rules and prefixes there
 * are. crates/policy/src/classifier.rs builds the sets and is tested against a
 * plain scan; this file only looks up.
 */
#ifndef FATPATH_MATCH_H
#define FATPATH_MATCH_H

#include "maps.h"

/* One inner map a slot; user space replaces the inner maps of the slot that is not live. */
#define FP_PER_SLOT(map, ...)                                                                      \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, 2);                                                            \
		__type(key, u32);                                                                  \
		__uint(pinning, LIBBPF_PIN_BY_NAME);                                               \
		__array(values, struct __VA_ARGS__);                                               \
	} map SEC(".maps")

struct fp_trie {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1 << 17);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct fp_address_key));
	__uint(value_size, sizeof(u32));
};

FP_PER_SLOT(fp_destinations, fp_trie);
FP_PER_SLOT(fp_sources, fp_trie);
FP_PER_SLOT(fp_cgroups, {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FP_MAX_RULES);
	__type(key, u64);
	__type(value, u32);
});
FP_PER_SLOT(fp_rule_sets, {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct fp_rule_set));
});

static __always_inline void map_address(u8 to[16], __be32 v4)
{
	__builtin_memset(to, 0, 10);
	to[10] = 0xff;
	to[11] = 0xff;
	__builtin_memcpy(to + 12, &v4, 4);
}

/* Both addresses of a socket in the 128-bit form of the tries. */
static __always_inline void addresses(struct tcp_sock *tp, u8 local[16], u8 remote[16])
{
	struct sock_common *c = &tp->inet_conn.icsk_inet.sk.__sk_common;

	if (c->skc_family == AF_INET6) {
		struct in6_addr l = c->skc_v6_rcv_saddr, r = c->skc_v6_daddr;

		__builtin_memcpy(local, &l, 16);
		__builtin_memcpy(remote, &r, 16);
	} else {
		map_address(local, c->skc_rcv_saddr);
		map_address(remote, c->skc_daddr);
	}
}

static __always_inline const struct fp_rule_set *set_at(void *sets, u32 index)
{
	return bpf_map_lookup_elem(sets, &index);
}

/*
 * A host speaks with the same peers again and again, and a trie of thousands of prefixes reads memory at each bit in
 * which they differ: each processor keeps what the tries said last. A trie never changes once it is in a slot, and no
 * other map has its id: a new policy brings new tries.
 */
#define RECENT_ADDRESSES 512

struct recent_address {
	u64 address[2];
	u32 trie; /* id; 0: nothing is kept here */
	u32 set;
	u32 is_in_use; /* whoever interrupts that asks the trie */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RECENT_ADDRESSES);
	__type(key, u32);
	__type(value, struct recent_address);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_recent_addresses SEC(".maps");

static __always_inline u32 set_in_trie(void *trie, const struct fp_address_key *key)
{
	u32 *set = bpf_map_lookup_elem(trie, key);

	return set ? *set : FP_NO_SET;
}

/* Multiplied by the golden ratio, neighbours fall apart. */
static __always_inline u32 recent_place(const u64 address[2])
{
	u32 place = (address[0] ^ address[1]) * 0x9e3779b97f4a7c15ull >> 32;

	return place % RECENT_ADDRESSES;
}

static __always_inline struct recent_address *recent_at(const u64 address[2])
{
	u32 place = recent_place(address);

	return bpf_map_lookup_elem(&fp_recent_addresses, &place);
}

static __always_inline u32 set_number(void *trie, const struct fp_address_key *key)
{
	u32 id = ((struct bpf_map *)trie)->id; /* 0: its policy has just gone */
	struct recent_address *recent;
	u64 address[2];
	u32 set;

	__builtin_memcpy(address, key->address, sizeof(address));
	recent = recent_at(address);
	if (!id || !recent || __sync_val_compare_and_swap(&recent->is_in_use, 0, 1))
		return set_in_trie(trie, key);
	if (recent->trie != id || recent->address[0] != address[0] ||
	    recent->address[1] != address[1]) {
		recent->set = set_in_trie(trie, key);
		recent->address[0] = address[0];
		recent->address[1] = address[1];
		recent->trie = id;
	}
	set = recent->set;
	barrier();
	recent->is_in_use = 0;
	return set;
}

/*
 * The set of an address, or FP_NO_SET. This and others below are global functions: if they were inlined, the verifier
 * would walk through them again for every way that leads to them.
 */
__noinline u32 set_of_address(u32 slot, u32 is_source, const struct fp_address_key *given)
{
	struct fp_address_key key;
	void *trie;

	if (!given)
		return FP_NO_SET;
	/* Linux 6.1 takes no argument for a key. */
	key = *given;
	trie = is_source ? bpf_map_lookup_elem(&fp_sources, &slot)
			 : bpf_map_lookup_elem(&fp_destinations, &slot);
	return trie ? set_number(trie, &key) : FP_NO_SET;
}

/* A place that the verifier sees is in the table: Linux 6.1 loses the bounds that clang relies on. */
static __always_inline u64 cut_at(u64 place)
{
	barrier_var(place);
	return place & (FP_MAX_PORT_CUTS - 1);
}

/* 1 or 0 without a branch. As a signed shift, clang's choice, Linux 6.18 takes it for one. */
static __always_inline u64 is_not_after(u64 first, u64 port)
{
	u64 sign = (first - port - 1) >> 63;

	barrier_var(sign);
	return sign;
}

/*
 * The set of the last cut that does not begin after `port`. Without a branch: the verifier
 * has one way through it.
 */
__noinline u32 set_of_port(u32 slot, u32 is_source, u32 port)
{
	const struct fp_slot *s = bpf_map_lookup_elem(&fp_slots, &slot);
	const struct fp_port_cut *cuts;
	u64 low = 0;

	if (!s)
		return 0;
	cuts = is_source ? s->source_ports : s->destination_ports;
	for (u64 step = FP_MAX_PORT_CUTS / 2; step; step /= 2)
		low += step * is_not_after(cuts[cut_at(low + step)].first, port);
	return cuts[cut_at(low)].set;
}

/* `self` is the first member of struct cgroup: a css of the default hierarchy is its cgroup. */
static __always_inline u64 cgroup_of(struct tcp_sock *tp)
{
	return (u64)BPF_CORE_READ(&tp->inet_conn.icsk_inet.sk, sk_cgrp_data.cgroup);
}

static __always_inline u64 id_of(u64 css)
{
	return BPF_CORE_READ((struct cgroup *)css, kn, id);
}

static __always_inline u64 parent_of(u64 css)
{
	return (u64)BPF_CORE_READ((struct cgroup_subsys_state *)css, parent);
}

/* The set of the nearest ancestor that a rule names. */
__noinline u32 set_of_cgroup(u64 css, u32 slot, u32 otherwise)
{
	void *cgroups = bpf_map_lookup_elem(&fp_cgroups, &slot);

	if (!cgroups)
		return otherwise;
	for (int i = 0; i < FP_MAX_CGROUP_DEPTH && css; i++) {
		u64 id = id_of(css);
		u32 *set = bpf_map_lookup_elem(cgroups, &id);

		if (set)
			return *set;
		css = parent_of(css);
	}
	return otherwise;
}

/* Whether the cgroup is `id` or below it. */
__noinline int is_below(u64 css, u64 id)
{
	for (int i = 0; i < FP_MAX_CGROUP_DEPTH && css; i++) {
		if (id_of(css) == id)
			return 1;
		css = parent_of(css);
	}
	return 0;
}

/* Whether `fatpath rude run` made the cgroup, or one above it. */
__noinline int is_below_rude(u64 css)
{
	for (int i = 0; i < FP_MAX_CGROUP_DEPTH && css; i++) {
		u64 id = id_of(css);

		if (bpf_map_lookup_elem(&fp_rude_cgroups, &id))
			return 1;
		css = parent_of(css);
	}
	return 0;
}

/* Whether the flow's cgroup is `id` or below it; 0 holds all. */
static __always_inline int is_in_cgroup(struct tcp_sock *tp, u64 id)
{
	return !id || is_below(cgroup_of(tp), id);
}

/* Whether `fatpath rude run` started the flow's program. */
static __always_inline int is_run_rude(struct tcp_sock *tp)
{
	return is_below_rude(cgroup_of(tp));
}

/*
 * The place of the lowest bit of a word that is not 0: what a de Bruijn sequence has in
 * its highest six bits when it is shifted so far (Leiserson, Prokop, Randall 1998).
 * Branches would give the verifier 64 ways; clang 14 crashes on __builtin_ctzll for bpf.
 */
static const u8 place_of_bit[64] = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};

static __always_inline u32 lowest_bit(u64 word)
{
	return place_of_bit[((word & -word) * 0x03f79d71b4cb0a89ull) >> 58];
}

/* Numbers of the sets of rules that a flow satisfies by each of its properties. */
struct fp_sets_of_flow {
	u32 to;
	u32 from;
	u32 to_port;
	u32 from_port;
	u32 cgroup;
};

/* The stable id of the first rule that is in all of the sets, or FP_NO_RULE. */
__noinline u32 first_in_all(u32 slot, const struct fp_sets_of_flow *numbers)
{
	const struct fp_slot *s = bpf_map_lookup_elem(&fp_slots, &slot);
	void *sets = bpf_map_lookup_elem(&fp_rule_sets, &slot);
	const struct fp_rule_set *to, *from, *to_port, *from_port, *cgroup;

	if (!s || !sets || !numbers)
		return FP_NO_RULE;
	to = set_at(sets, numbers->to);
	from = set_at(sets, numbers->from);
	to_port = set_at(sets, numbers->to_port);
	from_port = set_at(sets, numbers->from_port);
	cgroup = set_at(sets, numbers->cgroup);
	if (!to || !from || !to_port || !from_port || !cgroup)
		return FP_NO_RULE;
	for (int i = 0; i < FP_SET_WORDS; i++) {
		u64 both = to->words[i] & from->words[i] & to_port->words[i] & from_port->words[i] &
			   cgroup->words[i];

		if (both)
			return s->rule_id[(i * 64 + lowest_bit(both)) & (FP_MAX_RULES - 1)];
	}
	return FP_NO_RULE;
}

/* The stable id of the first rule that the flow satisfies, or FP_NO_RULE. */
static __always_inline u32 first_match(struct tcp_sock *tp, u32 slot)
{
	struct sock_common *c = &tp->inet_conn.icsk_inet.sk.__sk_common;
	struct fp_address_key local = { .prefix_len = 128 }, remote = { .prefix_len = 128 };
	const struct fp_slot *s = bpf_map_lookup_elem(&fp_slots, &slot);
	struct fp_sets_of_flow sets;

	if (!s || !(s->looks_at & FP_BY_DESTINATION))
		return FP_NO_RULE;
	addresses(tp, local.address, remote.address);
	sets.to = set_of_address(slot, 0, &remote);
	if (sets.to == FP_NO_SET)
		return FP_NO_RULE;
	sets.from = sets.to_port = sets.from_port = sets.cgroup = sets.to;
	if (s->looks_at & FP_BY_SOURCE)
		sets.from = set_of_address(slot, 1, &local);
	if (s->looks_at & FP_BY_DESTINATION_PORT)
		sets.to_port = set_of_port(slot, 0, bpf_ntohs(c->skc_dport));
	if (s->looks_at & FP_BY_SOURCE_PORT)
		sets.from_port = set_of_port(slot, 1, c->skc_num);
	if (s->looks_at & FP_BY_CGROUP)
		sets.cgroup = set_of_cgroup(cgroup_of(tp), slot, s->any_cgroup_set);
	return first_in_all(slot, &sets);
}

#endif
