/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of laws that go by samples of the delivery rate, and what a host stack calls: cc_rate_begin() when the
 * flow gets the law, cc_rate_makes_way() and cc_rate_start_at() where the path is known, cc_rate_acked() at every
 * acknowledgement, and cc_rate_recovery_begins(), cc_rate_undone(), cc_rate_transmission_starts(); cc_rate_start_ends() before another law.
 * Their parameters are checked as those of the others (laws.h).
 *
 * A new law: its file is included in laws.h and its name stands in CC_RATE_LAWS there.
 */
#ifndef FATPATH_CC_RATE_LAWS_H
#define FATPATH_CC_RATE_LAWS_H

#include "laws.h"

/* In the kernel a law is one straight function, as in laws.h. */
#ifdef __bpf__
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#endif

#define CC_RATE_BEGIN(law)                                                                         \
	case CC_LAW_##law:                                                                         \
		cc_##law##_begin(f, s);                                                            \
		break;
/* The flow has this law from here on, and the window that it has. */
static inline void cc_rate_begin(enum cc_law law, struct cc_rate_flow *f,
				 const struct cc_rate_sample *s)
{
	cc_sent_begin(&f->history, s->delivered_pkts, s->lost_pkts);
	switch (law) {
		CC_RATE_LAWS(CC_RATE_BEGIN)
	default:
		break;
	}
}

#define CC_RATE_START_AT(law)                                                                      \
	case CC_LAW_##law:                                                                         \
		cc_##law##_start_at(f, s, rate_bps);                                               \
		break;
/* Nothing was sent, and the path is known to carry so much, bits of data a second. */
static inline void cc_rate_start_at(enum cc_law law, struct cc_rate_flow *f,
				    const struct cc_rate_sample *s, cc_u64 rate_bps)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_START_AT)
	default:
		break;
	}
}

#define CC_RATE_MAKES_WAY(law)                                                                     \
	case CC_LAW_##law:                                                                         \
		return cc_##law##_makes_way(f, s, known);
/*
 * So much was learned of the path, and the flow has sent nothing under this law; s->srtt_us is of its handshake, or with
 * CC_RATE_HAD_LAW of what it sent before. 1 = others fill the path, or may: the flow makes way, and does not start at a rate.
 */
static inline int cc_rate_makes_way(enum cc_law law, struct cc_rate_flow *f,
				    const struct cc_rate_sample *s,
				    const struct cc_known_path *known)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_MAKES_WAY)
	default:
		return 0;
	}
}

#define CC_RATE_START_ENDS(law)                                                                    \
	case CC_LAW_##law:                                                                         \
		cc_##law##_start_ends(f);                                                          \
		break;
/* What of such a start was not tried counts no longer: another law comes, or segments of another size. */
static inline void cc_rate_start_ends(enum cc_law law, struct cc_rate_flow *f)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_START_ENDS)
	default:
		break;
	}
}

#define CC_RATE_ACKED(law)                                                                         \
	case CC_LAW_##law:                                                                         \
		cc_##law##_acked(f, (const struct cc_##law *)values, s);                           \
		break;
/* An acknowledgement, after the host has looked for losses. `values` must be accepted. */
static inline void cc_rate_acked(enum cc_law law, const cc_u32 *values, struct cc_rate_flow *f,
				 struct cc_rate_sample *s)
{
	cc_sent_recall(&f->history, s);
	switch (law) {
		CC_RATE_LAWS(CC_RATE_ACKED)
	default:
		break;
	}
	cc_sent_note(&f->history, s);
}

#define CC_RATE_RECOVERY_BEGINS(law)                                                               \
	case CC_LAW_##law:                                                                         \
		cc_##law##_recovery_begins(f);                                                     \
		break;
/* Fast recovery or a timeout, before the host lowers the window. */
static inline void cc_rate_recovery_begins(enum cc_law law, struct cc_rate_flow *f)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_RECOVERY_BEGINS)
	default:
		break;
	}
}

#define CC_RATE_UNDONE(law)                                                                        \
	case CC_LAW_##law:                                                                         \
		cc_##law##_undone(f);                                                              \
		break;
/* The losses were spurious. */
static inline void cc_rate_undone(enum cc_law law, struct cc_rate_flow *f)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_UNDONE)
	default:
		break;
	}
}

#define CC_RATE_STARTS(law)                                                                        \
	case CC_LAW_##law:                                                                         \
		cc_##law##_transmission_starts(f, (const struct cc_##law *)values, s);             \
		break;
/* A segment is about to leave with nothing in flight. */
static inline void cc_rate_transmission_starts(enum cc_law law, const cc_u32 *values,
					       struct cc_rate_flow *f,
					       const struct cc_rate_sample *s)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_STARTS)
	default:
		break;
	}
}

#define CC_RATE_IS_STARTING(law)                                                                   \
	case CC_LAW_##law:                                                                         \
		return cc_##law##_is_starting(f);
/* The flow looks for what the path carries, as in slow start. */
static inline int cc_rate_is_starting(enum cc_law law, struct cc_rate_flow *f)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_IS_STARTING)
	default:
		return 0;
	}
}

#define CC_RATE_HELD(law)                                                                          \
	case CC_LAW_##law:                                                                         \
		return cc_##law##_held_pkts(f);
/* What the path was found to hold, a window for the flow's next law; 0 = that was not found out. */
static inline cc_u32 cc_rate_held_pkts(enum cc_law law, struct cc_rate_flow *f)
{
	switch (law) {
		CC_RATE_LAWS(CC_RATE_HELD)
	default:
		return 0;
	}
}

#ifdef __bpf__
#pragma clang attribute pop
#endif

#endif
