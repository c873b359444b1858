/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every law works on: freestanding integer C, no kernel types, no helpers,
 * no floats, so that the same file runs in the kernel, in the simulator and in
 * the transport. Windows are in segments ("pkts"), as in Linux.
 *
 * A law is one file in this folder (start with reno.h, then aimd.h) and its name
 * in laws.h. It refuses to know of recovery, timers and bytes: the host stack owns
 * the window, says what was lost, and calls the functions of laws.h.
 */
#ifndef FATPATH_CC_LAW_H
#define FATPATH_CC_LAW_H

typedef unsigned char cc_u8;
typedef unsigned int cc_u32;
typedef unsigned long long cc_u64;

/* The least window after a loss that is not a timeout, RFC 5681 (4): 2 segments. */
#define CC_MIN_SSTHRESH_PKTS 2

/* From here on a threshold is none: TCP_INFINITE_SSTHRESH of Linux. */
#define CC_INFINITE_SSTHRESH 0x7fffffffu

/* The most parameters that a law can have, 32 bits each. */
#define CC_PARAMS 6

/* cc_memory.flags */
#define CC_BEGAN 1u	   /* the flow has sent */
#define CC_SLOW_STARTED 2u /* slow start grew the window since the last congestion event */
#define CC_RESUMES 4u	   /* a paced start that outlasts its first acknowledgement */
#define CC_SPREAD 8u	   /* what is in flight left paced: a queue is not of its own burst */

/** What was learned of a flow's path before it began. */
struct cc_known_path {
	cc_u32 bdp_pkts;    /**< It holds so many segments without a queue; 0 = unknown. */
	cc_u32 base_rtt_us; /**< Its round-trip time then. */
};

/* What hystart.h remembers. All 0 before the first sample. */
struct cc_hystart {
	cc_u32 round_end_seq;
	cc_u32 last_min_rtt_us; /* of the round before; 0 = none */
	cc_u32 min_rtt_us;	/* of this round; 0 = none */
	cc_u32 css_min_rtt_us;	/* when conservative slow start began; 0 = it has not */
	cc_u8 samples;		/* in this round, up to CC_HYSTART_N_RTT_SAMPLE */
	cc_u8 css_rounds;
	cc_u8 phase;	   /* enum cc_hystart_phase */
	cc_u8 prior_phase; /* before the last congestion event */
};

/* What a law has worked out for one window and one set of parameters: cc_memory.own, read by cc_memo(). */
struct cc_memo {
	cc_u32 cwnd_pkts; /* 0 = nothing */
	cc_u32 values[CC_PARAMS];
	cc_u32 result; /* in the law's own unit */
} __attribute__((may_alias));

/**
 * What the law and the start-up remember of a flow between calls: 96 bytes, of the 104 in
 * icsk_ca_priv. All 0 at its beginning.
 */
struct cc_memory {
	cc_u64 credit;	     /* growth earned but not yet a whole segment, in the law's own unit */
	cc_u64 prior_credit; /* before the last congestion event; before the first one and while
				CC_SPREAD, since when all met a queue, microseconds; 0 = not */
	cc_u64 own[4];	     /* the law's own: a struct cc_memo, or one in its file */
	struct cc_hystart hystart;
	cc_u32 slow_start_credit; /* 2^-32 segments */
	cc_u32 resume_pkts;	/* the window before a pause, where no ssthresh is known; or, while
				     CC_RESUMES, when the paced start began, microseconds */
	cc_u32 paced_from_pkts; /* the window before the paced start under way; 0 = there is none */
	cc_u32 undo_limit_pkts; /* an undo restores no more; 0 = no limit */
	cc_u32 flags;		/* CC_BEGAN and the others above */
	cc_u32 held_back_pkts;	/* of the window, by max_burst until the next ACK: see burst.h */
};
_Static_assert(sizeof(struct cc_memo) <= sizeof(((struct cc_memory *)0)->own), "a memo fits");

/**
 * The window of one flow, in segments, and what the host knows when it calls a law. The host
 * stack owns it; a law reads it and grows it.
 */
struct cc_window {
	cc_u32 cwnd_pkts;     /**< Congestion window. */
	cc_u32 ssthresh_pkts; /**< Slow-start threshold; none from CC_INFINITE_SSTHRESH on. */
	cc_u32 clamp_pkts;    /**< The congestion window is no more than this after cc_acked(). */
	cc_u32 srtt_us;	      /**< Smoothed round-trip time; 0 = none. */
	cc_u64 now_us;	      /**< Of any monotonic clock. */
	struct cc_memory memory; /**< What the law and the start-up remember between calls. */
};

/*
 * CC_PARAMS_OF(aimd, CC_AIMD_PARAMS) makes of a list P(name, least, most, initial,
 * meaning) the struct cc_aimd, cc_aimd_is_in_range(), cc_aimd_initial(), and on the host the
 * description cc_aimd_params. A name ends with its unit: a value in _milli, _micro
 * or _pico is shown to people as a fraction, _pkts are segments.
 */
#define CC_PARAM_FIELD(name, least, most, initial, meaning) cc_u32 name;
#define CC_PARAM_CHECK(name, least, most, initial, meaning)                                        \
	&&p->name - (cc_u32)(least) <= (cc_u32)(most) - (cc_u32)(least)
#define CC_PARAM_INITIAL(name, least, most, initial, meaning) p->name = (initial);
#define CC_PARAMS_OF(law, LIST)                                                                    \
	struct cc_##law {                                                                          \
		LIST(CC_PARAM_FIELD)                                                               \
	};                                                                                         \
	static inline int cc_##law##_is_in_range(const struct cc_##law *p)                         \
	{                                                                                          \
		(void)p;                                                                           \
		return 1 LIST(CC_PARAM_CHECK);                                                     \
	}                                                                                          \
	static inline void cc_##law##_initial(struct cc_##law *p)                                  \
	{                                                                                          \
		(void)p;                                                                           \
		LIST(CC_PARAM_INITIAL)                                                             \
	}                                                                                          \
	CC_DESCRIBE(law, LIST)

/* For a law whose parameters are consistent if each is in its range. */
#define CC_ALWAYS_CONSISTENT(law)                                                                  \
	static inline int cc_##law##_is_consistent(const struct cc_##law *p)                       \
	{                                                                                          \
		(void)p;                                                                           \
		return 1;                                                                          \
	}

/* For a law with no state of its own that a congestion event changes. */
#define CC_NOTHING_TO_UNDO(law)                                                                    \
	static inline void cc_##law##_undone(struct cc_window *w)                                  \
	{                                                                                          \
		(void)w;                                                                           \
	}

/* Whether a flow of the law has HyStart++ where its rule does not say. */
#define CC_HYSTART_BY_DEFAULT(law, is_on) enum { cc_##law##_hystart = (is_on) };

#ifdef CC_ON_HOST
struct cc_param {
	const char *name; /* NULL after the last */
	const char *meaning;
	cc_u32 least;
	cc_u32 most;
	cc_u32 initial;
};
#define CC_PARAM_DESCRIPTION(name, least, most, initial, meaning)                                  \
	{ #name, meaning, least, most, initial },
#define CC_DESCRIBE(law, LIST)                                                                     \
	static const struct cc_param cc_##law##_params[] = { LIST(CC_PARAM_DESCRIPTION){ 0, 0, 0,  \
											 0, 0 } };
#else
#define CC_DESCRIBE(law, LIST)
#endif

/*
 * The window grows by the whole segments in credit + earned, where a segment is
 * `segment` units. More than one segment cannot be left from before: the host has
 * lowered the window since, where old credit would be worth too much.
 */
static inline void cc_grow(struct cc_window *w, cc_u64 earned, cc_u64 segment)
{
	cc_u32 room = w->clamp_pkts > w->cwnd_pkts ? w->clamp_pkts - w->cwnd_pkts : 0;
	cc_u64 credit = w->memory.credit, steps;

	if (!segment)
		return;
	if (credit >= segment)
		credit = segment - 1;
	credit += earned;
	steps = credit / segment;
	w->memory.credit = credit - steps * segment;
	w->cwnd_pkts += (cc_u32)(steps < room ? steps : room);
}

/*
 * `a` / unit segments a round trip: each acknowledged segment earns a / cwnd. What
 * is below a segment is kept, so nothing is lost to rounding between ACKs.
 * 64 bits: acked_pkts < 2^32, a < 2^31, unit <= 2^20.
 */
static inline void cc_grow_in_round_trip(struct cc_window *w, cc_u32 a, cc_u32 unit,
					 cc_u32 acked_pkts)
{
	cc_grow(w, (cc_u64)acked_pkts * a, (cc_u64)w->cwnd_pkts * unit);
}

static inline struct cc_memo *cc_memo(struct cc_window *w)
{
	return (struct cc_memo *)w->memory.own;
}

/*
 * Whether the memo holds what was worked out for this window and these parameters;
 * if not, it is set to them and the law has to fill in `result`.
 */
static inline int cc_memo_fits(struct cc_window *w, const cc_u32 *values, cc_u32 count)
{
	struct cc_memo *memo = cc_memo(w);
	int fits = memo->cwnd_pkts == w->cwnd_pkts;
	cc_u32 i;

	for (i = 0; i < CC_PARAMS && i < count; i++) {
		fits = fits && memo->values[i] == values[i];
		memo->values[i] = values[i];
	}
	memo->cwnd_pkts = w->cwnd_pkts;
	return fits;
}

/* kept / unit of the window. */
static inline cc_u32 cc_part_of_window(const struct cc_window *w, cc_u32 kept, cc_u32 unit)
{
	return (cc_u32)((cc_u64)w->cwnd_pkts * kept / unit);
}

#endif
