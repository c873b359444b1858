/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In which phase the process of a flow is now, as phases.bpf.c follows it. Whatever is not known is FP_PHASE_OTHER.
 * Start at phase_now().
 */
#ifndef FATPATH_PHASE_H
#define FATPATH_PHASE_H

#include "kernel.h"
#include "maps.h"

/* A process whose end or return nobody saw is in no phase for long. */
static __always_inline int is_collective(const struct fp_process *process, u64 now_ns)
{
	u32 zero = 0;
	const struct fp_phase_gate *gate = bpf_map_lookup_elem(&fp_phase_gate, &zero);

	return gate && now_ns < gate->until_ns && (s32)process->threads > 0 &&
	       now_ns < process->entered_ns + gate->limit_ns;
}

/* `now_ns` is CLOCK_MONOTONIC. */
static __always_inline enum fp_phase phase_now(struct sock *sk, u64 now_ns)
{
	struct fp_owner *owner = bpf_sk_storage_get(&fp_owners, sk, NULL, 0);
	struct fp_process *process;

	if (!owner)
		return FP_PHASE_OTHER;
	process = bpf_map_lookup_elem(&fp_processes, &owner->process);
	if (!process || process->start_ns != owner->start_ns)
		return FP_PHASE_OTHER;
	return is_collective(process, now_ns) ? FP_PHASE_COLLECTIVE : FP_PHASE_OTHER;
}

#endif
