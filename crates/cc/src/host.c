/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The laws' static functions under names that Rust can link to. */
#include "aimd.h"

void fatpath_aimd_acked(struct cc_window *window, const struct cc_aimd *params, cc_u32 acked_pkts)
{
	cc_aimd_acked(window, params, acked_pkts);
}

cc_u32 fatpath_aimd_ssthresh(struct cc_window *window, const struct cc_aimd *params)
{
	return cc_aimd_ssthresh(window, params);
}

int fatpath_aimd_is_valid(const struct cc_aimd *params)
{
	return cc_aimd_is_valid(params);
}
