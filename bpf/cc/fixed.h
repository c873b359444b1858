/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Logarithms and powers of two in integers, for laws whose formulas have them.
 * Logarithms are in 2^-24 (CC_LOG_ONE is 1.0).
 */
#ifndef FATPATH_CC_FIXED_H
#define FATPATH_CC_FIXED_H

#include "law.h"

#define CC_LOG_BITS 24
#define CC_LOG_ONE (1u << CC_LOG_BITS)
#define CC_LOG_TERA 668792462u /* log2(10^12) */

/*
 * In the kernel a global function: the verifier checks it once, for any argument,
 * and not at every call for every exponent on the way to it. To the verifier its pointers may
 * be NULL, so it must test them.
 */
#ifdef __bpf__
#define CC_CHECKED_ALONE __attribute__((noinline))
#else
#define CC_CHECKED_ALONE static inline
#endif

/* log2(x) of x >= 1, rounded down: the exponent, then a bit of the fraction for each squaring. */
CC_CHECKED_ALONE cc_u32 cc_log2(cc_u32 x)
{
	cc_u32 log = 31;
	cc_u64 mantissa = x;
	int i;

	for (i = 16; i; i >>= 1) {
		if (mantissa >> (32 - i))
			continue;
		mantissa <<= i;
		log -= i;
	}
	for (i = 0; i < CC_LOG_BITS; i++) {
		mantissa = (mantissa * mantissa) >> 31;
		log = log << 1 | (cc_u32)(mantissa >> 32);
		mantissa >>= mantissa >> 32;
	}
	return log;
}

/*
 * Where x lies between low, 0, and high, CC_LOG_ONE, in logarithms: 0 below low, 64
 * at most. low < high, both >= 1.
 */
static inline cc_u64 cc_log_place(cc_u32 x, cc_u32 low, cc_u32 high)
{
	cc_u64 log_low = cc_log2(low), place;

	if (x <= low)
		return 0;
	place = ((cc_log2(x) - log_low) << CC_LOG_BITS) / (cc_log2(high) - log_low);
	return place < 64ull << CC_LOG_BITS ? place : 64ull << CC_LOG_BITS;
}

/* 2^log in 2^-14, of logs below 32; within 3.4e-6 of itself and 2^-14. */
#define CC_POWER_BITS 14
#define CC_POWER_ONE (1u << CC_POWER_BITS)
static inline cc_u64 cc_exp2(cc_u32 log)
{
	/* 2^f = 1 + c1 f + ... + c4 f^4 for 0 <= f < 1 within 3.4e-6; all in 2^-30. */
	cc_u64 f = (cc_u64)(log & (CC_LOG_ONE - 1)) << (30 - CC_LOG_BITS);
	cc_u64 y = 14556993;

	y = 55864884 + (y * f >> 30);
	y = 259182955 + (y * f >> 30);
	y = 744136992 + (y * f >> 30);
	y = (1u << 30) + (y * f >> 30);
	return (y << (log >> CC_LOG_BITS)) >> (30 - CC_POWER_BITS);
}

#endif
