/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SlowStart and CongAvoid of RFC 4898, which the kernel does not count: the laws do.
 */
#ifndef FATPATH_COUNT_ACK_H
#define FATPATH_COUNT_ACK_H

#include "maps.h"

static __always_inline void count_ack(struct sock *sk, int is_slow_start)
{
	struct fp_estats *e = bpf_sk_storage_get(&fp_estats, sk, NULL, 0);

	if (!e)
		return;
	e->flags |= FP_ESTATS_COUNTS_ACKS;
	if (is_slow_start)
		e->counted.slow_start_acks++;
	else
		e->counted.cong_avoid_acks++;
}

#endif
