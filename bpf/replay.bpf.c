/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The laws of cc/ as the kernel runs them, one call at a time: a test hands over a
 * window and an event, and gets them back (BPF_PROG_TEST_RUN). Only
 * crates/kernel/tests/laws_differential.rs loads it; it is in no other object.
 */
#include "include/kernel.h"
#include "cc/laws.h"

enum replay_event {
	REPLAY_BEGIN,
	REPLAY_ACKED,
	REPLAY_SSTHRESH,
	REPLAY_UNDO,
	REPLAY_RTT_SAMPLE,
	REPLAY_IDLE_RESTART,
	REPLAY_TRANSMISSION_STARTS,
	REPLAY_ACK_ARRIVED,
	REPLAY_ACCEPTS,
};

/* The program's context, in and out; the test has the twin. */
struct replay {
	struct cc_window window;
	struct cc_start start;
	u64 given[3]; /* the event's numbers, in the order of the C function's */
	u64 result;
	u32 event; /* enum replay_event */
	u32 law;   /* enum cc_law */
	u32 values[CC_PARAMS];
};

static __always_inline u64 happen(struct replay *r)
{
	struct cc_window *w = &r->window;

	switch (r->event) {
	case REPLAY_BEGIN:
		cc_begin(w, &r->start);
		return 0;
	case REPLAY_ACKED:
		cc_acked(r->law, r->values, &r->start, w, r->given[0]);
		return 0;
	case REPLAY_SSTHRESH:
		return cc_ssthresh(r->law, r->values, w, r->given[0]);
	case REPLAY_UNDO:
		return cc_undo_cwnd(r->law, w, r->given[0]);
	case REPLAY_RTT_SAMPLE:
		cc_rtt_sample(w, &r->start, r->given[0], r->given[1], r->given[2]);
		return 0;
	case REPLAY_IDLE_RESTART:
		cc_idle_restart(w, &r->start, r->given[0], r->given[1], r->given[2]);
		return 0;
	case REPLAY_TRANSMISSION_STARTS:
		return cc_transmission_starts(w, &r->start, r->given[0], r->given[1]);
	case REPLAY_ACK_ARRIVED:
		return cc_ack_arrived(w, r->given[0]);
	case REPLAY_ACCEPTS:
		return cc_law_accepts(r->law, r->values);
	}
	return ~0ull;
}

SEC("syscall")
int replay(struct replay *context)
{
	struct replay r = *context;

	r.result = happen(&r);
	*context = r;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
