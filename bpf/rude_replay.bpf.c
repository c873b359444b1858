/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cc/rude.h as the kernel runs it, one call at a time, as replay.bpf.c has the laws:
 * only crates/kernel/tests/rude_differential.rs loads it.
 */
#include "include/kernel.h"
#include "cc/rude.h"

enum rude_event {
	RUDE_BEGIN,
	RUDE_ACKED,
	RUDE_CONGESTED,
	RUDE_TIMED_OUT,
	RUDE_RECOVERY_BEGINS,
	RUDE_UNDONE,
	RUDE_CWND,
	RUDE_PACING,
	RUDE_GOES_OFF_NOW,
	RUDE_GOES_OFF_NICELY,
	RUDE_SHADOW_ACKED,
	RUDE_SHADOW_SSTHRESH,
	RUDE_CONVERGED,
	RUDE_RESUMES,
};

/* The program's context, in and out; the test has the twin. */
struct rude_replay {
	struct cc_rude rude;
	struct cc_window polite;
	struct cc_rude_now now;
	struct cc_start start;
	u64 given[3]; /* the event's numbers, in the order of the C function's */
	u64 result;
	u32 event; /* enum rude_event */
	u32 law;   /* enum cc_law */
	u32 values[CC_PARAMS];
	struct cc_rtt rtt;
	u32 pad;
};

/* More than a stack holds. */
static struct rude_replay flow;

static __always_inline u64 happen(struct rude_replay *r)
{
	switch (r->event) {
	case RUDE_BEGIN:
		cc_rude_begin(&r->rude, &r->polite, &r->now);
		return 0;
	case RUDE_ACKED:
		cc_rude_acked(r->law, r->values, &r->start, &r->rude, &r->now, &r->rtt);
		return 0;
	case RUDE_CONGESTED:
		cc_rude_congested(r->law, r->values, &r->rude, &r->now);
		return 0;
	case RUDE_TIMED_OUT:
		cc_rude_timed_out(r->law, r->values, &r->rude, &r->now);
		return 0;
	case RUDE_RECOVERY_BEGINS:
		cc_rude_recovery_begins(&r->rude);
		return 0;
	case RUDE_UNDONE:
		cc_rude_undone(r->law, &r->rude);
		return 0;
	case RUDE_CWND:
		return cc_rude_cwnd_pkts(&r->now);
	case RUDE_PACING:
		return cc_rude_pacing_bytes_per_s(&r->rude, &r->now, r->given[0]);
	case RUDE_GOES_OFF_NOW:
		cc_rude_off_now(&r->rude, r->given[0]);
		return 0;
	case RUDE_GOES_OFF_NICELY:
		return cc_rude_off_nicely(&r->rude, r->given[0]);
	case RUDE_SHADOW_ACKED:
		return cc_rude_shadow_acked(r->law, r->values, &r->start, &r->rude, &r->rtt,
					    r->given[0], r->given[1], r->given[2]);
	case RUDE_SHADOW_SSTHRESH:
		return cc_rude_shadow_ssthresh(r->law, r->values, &r->rude, r->given[0]);
	case RUDE_CONVERGED:
		return cc_rude_has_converged(r->given[0], r->rude.fair.cwnd_pkts, r->given[1]);
	case RUDE_RESUMES:
		cc_rude_resume(&r->rude, &r->now);
		return 0;
	}
	return ~0ull;
}

SEC("syscall")
int replay_rude(struct rude_replay *context)
{
	flow = *context;
	flow.result = happen(&flow);
	*context = flow;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
