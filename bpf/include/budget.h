/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many samples the host may make in a second. While all that is due fits into it, a flow is sampled once an
 * fp_instruments.interval_ns; beyond, the interval grows for all flows alike, so that each is sampled as often as
 * any other. Start at may_sample_interval() and may_sample_event().
 */
#ifndef FATPATH_BUDGET_H
#define FATPATH_BUDGET_H

#include "maps.h"

#define SECOND_NS 1000000000ull

/* One sample in so many is timed: reading the clock is not free. */
#define TIMED_ONE_IN 16

FP_ARRAY(fp_sample_budget, 1, u32); /* samples a second; user space writes it. 0 = no budget */
FP_ARRAY(fp_sampling, 1, struct fp_sampling);

static __always_inline struct fp_sampling *sampling(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&fp_sampling, &zero);
}

static __always_inline u32 samples_per_s(void)
{
	u32 zero = 0;
	u32 *budget = bpf_map_lookup_elem(&fp_sample_budget, &zero);

	return budget && *budget ? *budget : ~0u;
}

/* What the events of the second before leave for samples at round trips; at least a quarter of the budget. */
static __always_inline u32 left_by(u32 event_samples, u32 budget)
{
	u32 least = budget / 4 + 1;

	return event_samples + least < budget ? budget - event_samples : least;
}

/* Once an interval, each flow that was active takes one of the samples that are left. */
static __always_inline u64 interval_for(const struct fp_sampling *s, u32 left)
{
	return s->due_samples > left ? SECOND_NS * s->active_flows / left : 0;
}

/* The first that comes after the second's end decides on the next one. */
static __always_inline void begin_second(struct fp_sampling *s, u64 now_ns)
{
	u64 began_ns = s->began_ns;
	u32 left;

	if (now_ns - began_ns < SECOND_NS || (s64)(now_ns - began_ns) < 0 ||
	    __sync_val_compare_and_swap(&s->began_ns, began_ns, now_ns) != began_ns)
		return;
	left = left_by(s->event_samples, samples_per_s());
	s->interval_ns = interval_for(s, left);
	s->interval_samples_max = left;
	s->active_flows = s->due_samples = s->interval_samples = s->event_samples = 0;
}

/* What a flow may wait for its next sample; as configured, or longer. */
static __always_inline u64 interval_in_force(const struct fp_sampling *s,
					     const struct fp_instruments *config)
{
	return s->interval_ns > config->interval_ns ? s->interval_ns : config->interval_ns;
}

static __always_inline void note_active(struct fp_sampling *s, struct fp_estats *e, u64 now_ns)
{
	if ((s64)(e->due_ns - s->began_ns) < 0)
		__sync_fetch_and_add(&s->active_flows, 1);
	e->due_ns = now_ns;
}

/* The kernel's clock of this event may be a little before the last sample's. */
static __always_inline int is_over(u64 since_ns, u64 now_ns, u64 interval_ns)
{
	return (s64)(now_ns - since_ns) >= (s64)interval_ns;
}

/* Whether a flow is sampled at this round trip. */
static __always_inline int may_sample_interval(struct fp_sampling *s, struct fp_estats *e,
					       u64 now_ns, const struct fp_instruments *config)
{
	if (!is_over(e->due_ns, now_ns, config->interval_ns))
		return 0;
	begin_second(s, now_ns);
	note_active(s, e, now_ns);
	__sync_fetch_and_add(&s->due_samples, 1);
	if (!is_over(e->sampled_ns, now_ns, interval_in_force(s, config)))
		return 0;
	return __sync_fetch_and_add(&s->interval_samples, 1) < s->interval_samples_max;
}

/* Whether an event of a flow has a sample of its own; else the flow's next one has it in its counters. */
static __always_inline int may_sample_event(struct fp_sampling *s, u64 now_ns)
{
	begin_second(s, now_ns);
	if (__sync_fetch_and_add(&s->event_samples, 1) < samples_per_s())
		return 1;
	count(FP_COUNT_EVENTS_UNSAMPLED);
	return 0;
}

/* A flow's begin and its end are always sampled. */
static __always_inline void note_event(struct fp_sampling *s, u64 now_ns)
{
	begin_second(s, now_ns);
	__sync_fetch_and_add(&s->event_samples, 1);
}

/* What a sample took, now and then: user space makes a number of samples of a share of a processor. */
static __always_inline void note_time(struct fp_sampling *s, u64 begun_ns)
{
	if ((begun_ns >> 6) % TIMED_ONE_IN)
		return;
	__sync_fetch_and_add(&s->timed_ns, bpf_ktime_get_ns() - begun_ns);
	__sync_fetch_and_add(&s->timed_samples, 1);
}

#endif
