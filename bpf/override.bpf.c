/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_application: on some paths a program's own SO_SNDBUF and SO_RCVBUF
 * are ignored, as the WAD could.
 *
 * A socket without a peer is on no path yet, so what is asked of it is kept
 * here and given to the kernel when the flow turns out to be on a path that does
 * not override (honour_asked() in settings.h). It cannot be given to the kernel
 * at once: the window scale of a SYN-ACK follows the listening socket's buffer,
 * and a locked buffer cannot be unlocked. The program reads back what it set.
 *
 * What was learned of a path overrides smaller sizes alone, where the policy allows it.
 *
 * Attached only while some rule overrides, or what is learned may. SO_SNDBUFFORCE and SO_RCVBUFFORCE
 * take CAP_NET_ADMIN, so they are the administrator's word and pass.
 */
#include "include/option.h"

static __always_inline int is_buffer(int level, int option)
{
	return level == SOL_SOCKET && (option == SO_SNDBUF || option == SO_RCVBUF);
}

static __always_inline int has_no_peer(struct bpf_sock *sk)
{
	return sk->state == BPF_TCP_CLOSE || sk->state == BPF_TCP_LISTEN;
}

static __always_inline int is_overridden(struct bpf_sock *sk, int option, u32 bytes)
{
	u32 setting = option == SO_SNDBUF ? FP_SEND_BUFFER : FP_RECEIVE_BUFFER;
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	if (!flow || !FP_IS_GIVEN(&flow->wanted, FP_OVERRIDE_APPLICATION) ||
	    !FP_IS_GIVEN(&flow->wanted, setting))
		return 0;
	return !is_learned(flow->rule_id) || bytes <= flow->wanted.value[setting];
}

/* Keeps what was asked; false when there is no memory for it. */
static __always_inline int keep(struct bpf_sock *sk, int option, u32 bytes)
{
	struct fp_asked *asked =
		bpf_sk_storage_get(&fp_asked, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!asked)
		return 0;
	/* 0 stands for "not asked"; the kernel would make the least buffer of it. */
	if (!bytes)
		bytes = 1;
	if (option == SO_SNDBUF)
		asked->send_buffer_bytes = bytes;
	else
		asked->receive_buffer_bytes = bytes;
	return 1;
}

/* The kernel is about to be given another value than was kept. */
static __always_inline void forget(struct bpf_sock *sk, int option)
{
	struct fp_asked *asked = bpf_sk_storage_get(&fp_asked, sk, NULL, 0);

	if (!asked)
		return;
	if (option == SO_SNDBUF)
		asked->send_buffer_bytes = 0;
	else
		asked->receive_buffer_bytes = 0;
}

SEC("cgroup/setsockopt")
int keep_asked(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	u32 *value = ctx->optval;

	if (!is_buffer(ctx->level, ctx->optname) || !is_tcp(sk))
		goto pass;
	/* The value is in a buffer of 16 bytes at least; the kernel refuses what is shorter than an int. */
	if (ctx->optlen < (int)sizeof(*value) || (void *)(value + 1) > ctx->optval_end)
		goto pass;
	if (!has_no_peer(sk) && !is_overridden(sk, ctx->optname, *value)) {
		forget(sk, ctx->optname);
		goto pass;
	}
	if (keep(sk, ctx->optname, *value))
		ctx->optlen = -1; /* the kernel is skipped, the program sees success */
	return 1;
pass:
	pass_unseen(ctx);
	return 1;
}

/* The least buffers of the kernel, which its own structures set: SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF. */
#define MIN_SNDBUF_BYTES 4608u
#define MIN_RCVBUF_BYTES 2304u

/* What getsockopt would show had the kernel been given `bytes`: sk_setsockopt(). */
static __always_inline u32 as_shown(u32 bytes, u32 max_bytes, u32 min_bytes)
{
	u32 kept = (bytes < max_bytes ? bytes : max_bytes) * 2;

	return kept > min_bytes ? kept : min_bytes;
}

SEC("cgroup/getsockopt")
int tell_asked(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	u32 *value = ctx->optval;
	struct fp_control *control;
	struct fp_asked *asked;
	u32 zero = 0;

	if (!is_buffer(ctx->level, ctx->optname) || !is_tcp(sk))
		goto pass;
	if ((void *)(value + 1) > ctx->optval_end)
		goto pass;
	asked = bpf_sk_storage_get(&fp_asked, sk, NULL, 0);
	control = bpf_map_lookup_elem(&fp_control, &zero);
	if (!asked || !control || ctx->retval)
		goto pass;
	if (ctx->optname == SO_SNDBUF && asked->send_buffer_bytes)
		*value = as_shown(asked->send_buffer_bytes, control->send_buffer_max_bytes,
				  MIN_SNDBUF_BYTES);
	if (ctx->optname == SO_RCVBUF && asked->receive_buffer_bytes)
		*value = as_shown(asked->receive_buffer_bytes, control->receive_buffer_max_bytes,
				  MIN_RCVBUF_BYTES);
	return 1;
pass:
	pass_unseen(ctx);
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
