/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of tuned flows: an iterator over the socket storage, of every network namespace, or over the sockets
 * of one namespace, that writes one struct fp_flow_record a flow. It changes nothing.
 * And the count of those that share a rule's buffers.
 */
#include "include/kernel.h"
#include "include/new_flow.h"
#include "include/record.h"

/* Too large for the stack; one walk a processor at a time writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_flow_record);
} scratch SEC(".maps");

static __always_inline int is_established(const struct fp_flow *flow)
{
	return flow && flow->flags & FP_FLOW_ESTABLISHED;
}

static __always_inline void list_flow(struct seq_file *seq, struct tcp_sock *tp,
				      const struct fp_flow *flow)
{
	u32 zero = 0;
	struct fp_flow_record *r = bpf_map_lookup_elem(&scratch, &zero);

	if (!r || !tp)
		return;
	r->kind = 0;
	r->tcp.cookie = bpf_get_socket_cookie(tp);
	fill_record(r, tp, flow, bpf_sk_storage_get(&fp_asked, tp, NULL, 0),
		    bpf_sk_storage_get(&fp_rudes, tp, NULL, 0));
	bpf_seq_write(seq, r, sizeof(*r));
}

SEC("iter/bpf_sk_storage_map")
int list_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct fp_flow *flow = ctx->value;

	if (sk && is_established(flow))
		list_flow(ctx->meta->seq, bpf_skc_to_tcp_sock(sk), flow);
	return 0;
}

/* Those of a network namespace: for kernels that let no program iterate over a map. */
SEC("iter/tcp")
int list_flows_here(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : NULL;
	struct fp_flow *flow = tp ? bpf_sk_storage_get(&fp_flows, tp, NULL, 0) : NULL;

	if (is_established(flow))
		list_flow(ctx->meta->seq, tp, flow);
	return 0;
}

/* Before a list: it shows what has storage. */
SEC("iter/tcp")
int keep_new(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : NULL;

	if (tp)
		keep(tp, cookie_of(tp));
	return 0;
}

/* It sent or received data lately, or has data to send. */
static __always_inline int carries_data(const struct tcp_sock *tp, u32 idle_ticks)
{
	u32 now = (u32)bpf_jiffies64();

	return tp->write_seq != tp->snd_una || now - tp->lsndtime < idle_ticks ||
	       now - tp->inet_conn.icsk_ack.lrcvtime < idle_ticks;
}

/* The reader adds them up for fp_shares. */
static __always_inline void list_share(struct seq_file *seq, struct tcp_sock *tp,
				       struct fp_flow *flow)
{
	u32 zero = 0, *idle_ticks = bpf_map_lookup_elem(&fp_idle_ticks, &zero);
	struct fp_divided divided = {};

	if (!tp || !idle_ticks || !FP_IS_GIVEN(&flow->wanted, FP_DIVIDE))
		return;
	flow->is_counted = carries_data(tp, *idle_ticks);
	divided.rule_id = flow->rule_id;
	divided.netns = tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->ns.inum;
	divided.is_counted = flow->is_counted;
	bpf_seq_write(seq, &divided, sizeof(divided));
}

SEC("iter/bpf_sk_storage_map")
int list_divided(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct fp_flow *flow = ctx->value;

	if (sk && is_established(flow))
		list_share(ctx->meta->seq, bpf_skc_to_tcp_sock(sk), flow);
	return 0;
}

SEC("iter/tcp")
int list_divided_here(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : NULL;
	struct fp_flow *flow = tp ? bpf_sk_storage_get(&fp_flows, tp, NULL, 0) : NULL;

	if (is_established(flow))
		list_share(ctx->meta->seq, tp, flow);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
