/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP_RUDE, a private option at IPPROTO_TCP (include/fatpath/rude.h): a program asks for
 * its connection to be rude, or polite again, and reads what it is.
 *
 * EINVAL for another value or less than an int, ENOTCONN where there is no connection,
 * EPERM where rudeness is not permitted (rude.h). Sockets that are no TCP of IPv4 or IPv6
 * and other options pass untouched. Attached while the gate is open or some rule speaks
 * of rudeness; a kernel without them answers ENOPROTOOPT.
 */
#include "include/option.h"
#include "include/rude.h"

#define TCP_RUDE 0x7001

/* Values to set; to get: enum fp_rude_mode. */
#define RUDE_OFF_NOW 0
#define RUDE_ON 1
#define RUDE_OFF_NICELY 2

static __always_inline int is_ours(struct bpf_sockopt *ctx)
{
	return ctx->level == IPPROTO_TCP && ctx->optname == TCP_RUDE && is_tcp(ctx->sk);
}

/*
 * The socket for BPF_CORE_READ. The verifier lets nobody reach past struct bpf_sock, and
 * gives these programs no bpf_skc_to_tcp_sock(): so the address is taken as a number.
 */
static __always_inline struct sock *whole(struct bpf_sock *sk)
{
	struct sock *address = NULL;

	bpf_probe_read_kernel(&address, sizeof(address), &sk);
	return address;
}

/* In these states data may still leave. */
static __always_inline int is_connected(const struct bpf_sock *sk)
{
	u32 states = 1u << BPF_TCP_ESTABLISHED | 1u << BPF_TCP_CLOSE_WAIT |
		     1u << BPF_TCP_FIN_WAIT1 | 1u << BPF_TCP_CLOSING | 1u << BPF_TCP_LAST_ACK;
	u32 state = sk->state;

	return state < 32 && states & (1u << state);
}

static __always_inline struct fp_rule *rule_of(const struct fp_flow *flow)
{
	u32 rule_id = flow ? flow->rule_id : FP_NO_RULE;

	return bpf_map_lookup_elem(&fp_rules, &rule_id);
}

static __always_inline int turn_on(struct bpf_sock *sk, const struct fp_flow *flow)
{
	u32 user = (u32)bpf_get_current_uid_gid();
	struct fp_rule *rule = rule_of(flow);
	struct fp_rude_flow *rude;

	if (!flow || !may_be_rude(whole(sk), flow->rule_id, rule, user))
		return -EPERM;
	rude = bpf_sk_storage_get(&fp_rudes, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!rude)
		return -ENOMEM;
	/* Who asks again and again would be rude without marks most of the time. */
	if (rude->flags & FP_RUDE_UNMARKED)
		return -EPERM;
	if (rude->mode != FP_RUDE)
		return become_rude(sk, rule, rude, user);
	rude->user = user;
	return 0;
}

/* Where the rule wants it always, the program has no say. */
static __always_inline int is_settled(struct bpf_sock *sk, const struct fp_flow *flow,
				      const struct fp_rule *rule, struct fp_rude_flow *rude)
{
	return rule && rule->value[FP_RUDENESS] == FP_RUDE_ALWAYS &&
	       may_stay_rude(whole(sk), flow, rude);
}

static __always_inline int turn_off(struct bpf_sock *sk, const struct fp_flow *flow, u32 mode)
{
	struct fp_rude_flow *rude = rude_of(sk);
	struct fp_rule *rule = rule_of(flow);

	if (!rude || rude->mode == FP_POLITE || rude->mode == mode)
		return 0;
	if (is_settled(sk, flow, rule, rude))
		return -EPERM;
	if (rude->mode == FP_GOING_POLITE) {
		stop_going_polite(sk, rule, rude);
		return 0;
	}
	rude->mode = mode;
	set_fair_law(sk, rule, rude);
	return 0;
}

static __always_inline int set(struct bpf_sock *sk, u32 value)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	if (value > RUDE_OFF_NICELY)
		return -EINVAL;
	if (value == RUDE_ON && !is_gate_open())
		return -EPERM;
	if (!is_connected(sk))
		return -ENOTCONN;
	if (value == RUDE_ON)
		return turn_on(sk, flow);
	return turn_off(sk, flow, value == RUDE_OFF_NOW ? FP_POLITE : FP_GOING_POLITE);
}

SEC("cgroup/setsockopt")
int set_rude(struct bpf_sockopt *ctx)
{
	u32 *value = ctx->optval;
	int error = -EINVAL;

	if (!is_ours(ctx)) {
		pass_unseen(ctx);
		return 1;
	}
	/* The buffer is never shorter than 16 bytes, whatever the program gave. */
	if (ctx->optlen >= (s32)sizeof(*value) && (void *)(value + 1) <= ctx->optval_end)
		error = set(ctx->sk, *value);
	if (!error) {
		ctx->optlen = -1; /* the kernel is skipped */
		return 1;
	}
	bpf_set_retval(error);
	return 0;
}

SEC("cgroup/getsockopt")
int get_rude(struct bpf_sockopt *ctx)
{
	u32 *value = ctx->optval;
	struct fp_rude_flow *rude;

	if (!is_ours(ctx)) {
		pass_unseen(ctx);
		return 1;
	}
	if ((void *)(value + 1) > ctx->optval_end) {
		bpf_set_retval(-EINVAL);
		return 0;
	}
	rude = rude_of(ctx->sk);
	*value = rude ? rude->mode : FP_POLITE;
	ctx->optlen = sizeof(*value);
	barrier(); /* one store to both is refused */
	ctx->retval = 0;
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
