/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program that the verifier refuses: it uses a map's value without asking whether there is one. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} unknown SEC(".maps");

SEC("sockops")
int refused(struct bpf_sock_ops *ctx)
{
	__u32 key = ctx->op, *value = bpf_map_lookup_elem(&unknown, &key);

	return *value;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
