/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs on setsockopt and getsockopt share: every option of the host passes them. */
#ifndef FATPATH_OPTION_H
#define FATPATH_OPTION_H

#include "maps.h"

static __always_inline int is_tcp(struct bpf_sock *sk)
{
	return sk && sk->type == SOCK_STREAM && sk->protocol == IPPROTO_TCP &&
	       (sk->family == AF_INET || sk->family == AF_INET6);
}

/* A long option is handed on unseen: the kernel copies only a page of it. */
static __always_inline void pass_unseen(struct bpf_sockopt *ctx)
{
	if (ctx->optlen > 4096)
		ctx->optlen = 0;
}

#endif
