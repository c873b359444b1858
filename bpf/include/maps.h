/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that the objects share. They are pinned by name, so every object and
 * every later daemon finds the same ones, and they outlive the daemon.
 */
#ifndef FATPATH_MAPS_H
#define FATPATH_MAPS_H

#include "kernel.h"
#include "abi.h"

/* Whether the rule is not of the policy file: what was learned of a path. */
static __always_inline int is_learned(u32 rule_id)
{
	return rule_id >= FP_MAX_RULE_IDS && rule_id < FP_ALL_RULE_IDS;
}

#define FP_IS_GIVEN(rule, setting) ((rule)->given & (1u << (setting)))

#define FP_ARRAY(map, entries, value_type)                                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, entries);                                                      \
		__type(key, u32);                                                                  \
		__type(value, value_type);                                                         \
		__uint(pinning, LIBBPF_PIN_BY_NAME);                                               \
	} map SEC(".maps")

/* A start at the known rate of a path is over after so many round trips: then the next flow may. */
#define START_ROUND_TRIPS 4

FP_ARRAY(fp_control, 1, struct fp_control);
FP_ARRAY(fp_slots, 2, struct fp_slot);
FP_ARRAY(fp_rules, FP_ALL_RULE_IDS, struct fp_rule);
FP_ARRAY(fp_phase_rules, FP_MAX_RULE_IDS,
	 struct fp_rule); /* in a collective phase, where has_phases */
FP_ARRAY(fp_phase_gate, 1, struct fp_phase_gate);
FP_ARRAY(fp_names, FP_ALL_RULE_IDS, struct fp_name); /* for user space: the daemon may be away */
FP_ARRAY(fp_build, 1, struct fp_build);
FP_ARRAY(fp_shares, FP_ALL_RULE_IDS, struct fp_share);
FP_ARRAY(fp_host, 1, struct fp_host);
FP_ARRAY(fp_idle_ticks, 1, u32); /* without data for so long a flow does not count in its share */

/* Per processor, so that counting costs no shared cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FP_COUNTS);
	__type(key, u32);
	__type(value, u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_counts SEC(".maps");

FP_ARRAY(fp_new_flows, FP_NEW_FLOWS, struct fp_new_flow);

/* fp_flow of every other flow that matched a rule; freed with its socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fp_flow);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_flows SEC(".maps");

/* Cloned: what was asked of a listening socket holds for those it accepts. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct fp_asked);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_asked SEC(".maps");

/* The processes whose phases are followed: phases.bpf.c. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct fp_process);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_processes SEC(".maps");

/* Of sockets made while phases are followed. Cloned: an accepted socket is the listening process's. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct fp_owner);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_owners SEC(".maps");

/* fp_rude_flow of every flow that asked to be rude, or whose rule wants it. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fp_rude_flow);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_rudes SEC(".maps");

/* fp_estats of every flow that is sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fp_estats);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_estats SEC(".maps");

FP_ARRAY(fp_rude_gate, 1, struct fp_rude_gate);

/*
 * What fatpath did to which interface: written before it is done, so that it can be undone.
 * A flow may be rude only over an interface whose entry is whole.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fp_interface);
	__type(value, struct fp_mark);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_marks SEC(".maps");

/* Network namespaces (inode) that have interfaces in fp_marks, by their cookies. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct fp_marked);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_marked_netns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fp_rude_user);
	__type(value, u32); /* 1 */
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_rude_users SEC(".maps");

/* Cgroups (id) whose programs `fatpath rude run` runs: their flows ask to be rude. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u32); /* 1 */
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_rude_cgroups SEC(".maps");

FP_ARRAY(fp_rude_shares, FP_ALL_RULE_IDS, struct fp_share); /* rude flows of each rule */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_events SEC(".maps");

/*
 * Waking a ring's reader costs an interrupt, which is more than the rest of a short flow's end: it looks by
 * itself (PAUSE in events.rs), and is woken once in so many bytes, a quarter of the ring. Processors may pass the mark
 * together: the next record wakes the reader too. Where many do, nobody may see the mark: the next is before the ring's end.
 */
static __always_inline u64 wake_flag(void *ring, u64 once_in_bytes, u64 record_bytes)
{
	u64 written = bpf_ringbuf_query(ring, BPF_RB_PROD_POS);

	return written % once_in_bytes < 2 * record_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#define FP_WAKE_FLAG(record) wake_flag(&fp_events, 1024 * 1024, sizeof(*(record)))

static __always_inline void count(u32 which)
{
	u64 *n = bpf_map_lookup_elem(&fp_counts, &which);

	/* What interrupts a program on its processor may count, too. */
	if (n)
		__sync_fetch_and_add(n, 1);
}

#endif
