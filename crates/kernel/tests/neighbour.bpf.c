/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another user of sockops and of setsockopt on the same cgroup. Callback flags are the socket's, so it may keep those
 * that it finds, or set its own in place of them.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum { ESTABLISHED, ROUND_TRIPS, OPTIONS, COUNTS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* 1: its own flags in place of those that it finds. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} overwrites SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *counted = bpf_map_lookup_elem(&counts, &what);

	if (counted)
		__sync_fetch_and_add(counted, 1);
}

static __always_inline void set_callbacks(struct bpf_sock_ops *ctx)
{
	__u32 zero = 0, flags = BPF_SOCK_OPS_RTT_CB_FLAG;
	__u32 *overwrite = bpf_map_lookup_elem(&overwrites, &zero);

	if (!overwrite || !*overwrite)
		flags |= ctx->bpf_sock_ops_cb_flags;
	bpf_sock_ops_cb_flags_set(ctx, flags);
}

SEC("sockops")
int neighbour(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		count(ESTABLISHED);
		set_callbacks(ctx);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		count(ROUND_TRIPS);
		break;
	}
	return 1;
}

SEC("cgroup/setsockopt")
int neighbour_option(struct bpf_sockopt *ctx)
{
	count(OPTIONS);
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
