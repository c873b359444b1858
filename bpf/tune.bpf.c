/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow meets the policy: sockops on the cgroup-2 root for flows that begin,
 * an iterator for those that live when the policy changes.
 *
 * Nothing here can fail a connection: whatever goes wrong, TCP goes on with the
 * settings it has. Start reading at tune().
 */
#include "include/kernel.h"
#include "include/match.h"
#include "include/new_flow.h"
#include "include/paths.h"
#include "include/record.h"
#include "include/rude_meet.h"

FP_ARRAY(fp_walk, 1, struct fp_walk);

/* Linux 6.12: bpf_setsockopt can switch the callbacks of a socket outside sockops. */
#ifndef TCP_BPF_SOCK_OPS_CB_FLAGS
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
#endif

static __always_inline void say_share_changed(u32 rule_id)
{
	struct fp_share_event *e = bpf_ringbuf_reserve(&fp_events, sizeof(*e), 0);

	if (!e) {
		count(FP_COUNT_LOST);
		return;
	}
	e->kind = FP_EVENT_SHARE_CHANGED;
	e->rule_id = rule_id;
	bpf_ringbuf_submit(e, FP_WAKE_FLAG(e));
}

static __always_inline void join_share(struct fp_flow *flow)
{
	u32 rule_id = flow->rule_id; /* as in leave_share() */
	struct fp_share *share = bpf_map_lookup_elem(&fp_shares, &rule_id);

	if (!share || flow->is_counted)
		return;
	flow->is_counted = 1;
	if (__sync_fetch_and_add(&share->flows, 1) > 0)
		say_share_changed(rule_id);
}

/* A global function: the verifier walks through it once, not once for each way to it. */
__noinline int leave_share(struct fp_flow *flow)
{
	struct fp_share *share;
	u32 rule_id;

	if (!flow || !flow->is_counted)
		return 0;
	rule_id = flow->rule_id; /* Linux 6.1 takes no part of an argument for a key */
	share = bpf_map_lookup_elem(&fp_shares, &rule_id);
	if (!share)
		return 0;
	flow->is_counted = 0;
	if (take_off(share) > 1)
		say_share_changed(rule_id);
	return 0;
}

/* The next ACK of a rude flow enters it among the rude flows of its new rule. */
static __always_inline void leave_shares(struct fp_flow *flow, struct fp_rude_flow *rude)
{
	leave_share(flow);
	if (rude)
		leave_rude_share(rude);
}

/* Another rule's flows are counted by themselves. */
static __always_inline void forget_shared_rate(struct fp_flow *flow)
{
	flow->shared_by = 0;
	__builtin_memset(flow->sent_in, 0, sizeof(flow->sent_in));
}

static __always_inline void leave_rule(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				       void *sk)
{
	leave_shares(flow, rude_of(sk));
	take_back(flow, tp, target, NULL);
	flow->rule_id = FP_NO_RULE;
	flow->phase = FP_PHASE_OTHER;
	__builtin_memset(&flow->wanted, 0, sizeof(flow->wanted));
}

/*
 * Sockops hears of the end of a flow that begins with it. One that lives already may end unheard before Linux 6.12: it
 * stands in a share from the next count to the one after its end.
 */
static __always_inline void enter_rule(struct fp_flow *flow, struct tcp_sock *tp, void *target,
				       u32 rule_id, const struct fp_rule *rule, enum fp_stage stage,
				       struct fp_rude_flow *rude)
{
	if (flow->rule_id != rule_id) {
		leave_shares(flow, rude);
		forget_shared_rate(flow);
	} else if (!FP_IS_GIVEN(rule, FP_DIVIDE)) {
		leave_share(flow);
	}
	take_back(flow, tp, target, rule);
	if (flow->rule_id != rule_id || !rule->has_phases)
		flow->phase = FP_PHASE_OTHER;
	flow->phase_given = FP_PHASE_OTHER;
	flow->rule_id = rule_id;
	flow->wanted = *rule;
	if (stage == FP_ESTABLISHED && FP_IS_GIVEN(rule, FP_DIVIDE))
		join_share(flow);
}

static __always_inline struct fp_flow *flow_of(void *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	if (flow)
		return flow;
	flow = bpf_sk_storage_get(&fp_flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow) {
		count(FP_COUNT_NO_STORAGE);
		return NULL;
	}
	flow->rule_id = FP_NO_RULE;
	return flow;
}

/* The rule of the policy, or what was learned; FP_NO_RULE: none. Of a socket that asked for buffers, what it is to get. */
static __always_inline u32 meet_policy(void *target, void *sk, struct tcp_sock *tp)
{
	u32 zero = 0, rule_id;
	struct fp_control *control = bpf_map_lookup_elem(&fp_control, &zero);
	struct fp_asked *asked;
	struct fp_rule *rule;

	if (!control)
		return FP_NO_RULE;
	rule_id = first_match(tp, control->live_slot & 1);
	if (rule_id == FP_NO_RULE)
		rule_id = learned_rule(tp);
	rule = bpf_map_lookup_elem(&fp_rules, &rule_id);
	/* Also when no rule overrides any more: a listening socket may have asked before. */
	asked = bpf_sk_storage_get(&fp_asked, sk, NULL, 0);
	if (asked)
		honour_asked(target, asked, rule, rule_id);
	return rule ? rule_id : FP_NO_RULE;
}

/* The flow gets what its rule says. `sk` is the socket as bpf_sk_storage_get takes it in the calling program. */
static __always_inline void meet_rule(struct fp_flow *flow, void *target, void *sk,
				      struct tcp_sock *tp, u32 rule_id, const struct fp_rule *rule,
				      enum fp_stage stage)
{
	struct fp_rude_flow *rude = rude_of(sk);

	enter_rule(flow, tp, target, rule_id, rule, stage, rude);
	decide_rudeness(flow, tp, rude, rule, stage);
	give_all(flow, tp, target, rule, stage);
	if (stage != FP_BEFORE_SYN)
		make_rude_or_polite(flow, tp, target, sk, rude, rule);
}

static __always_inline int is_policy_live(void)
{
	u32 zero = 0;
	struct fp_control *control = bpf_map_lookup_elem(&fp_control, &zero);

	return control && control->generation;
}

/* The meeting of a flow that lives. Returns the flow when it has a rule. */
static __always_inline struct fp_flow *meet(struct tcp_sock *tp)
{
	struct fp_rule *rule;
	struct fp_flow *flow;
	u32 rule_id;

	if (!is_policy_live())
		return NULL;
	rule_id = meet_policy(tp, tp, tp);
	rule = bpf_map_lookup_elem(&fp_rules, &rule_id);
	if (!rule) {
		flow = bpf_sk_storage_get(&fp_flows, tp, NULL, 0);
		if (flow)
			leave_rule(flow, tp, tp, tp);
		return NULL;
	}
	flow = flow_of(tp);
	if (flow)
		meet_rule(flow, tp, tp, tp, rule_id, rule, FP_LIVE);
	return flow;
}

/* Other programs' callbacks stay. */
static __always_inline void ask_for(struct bpf_sock_ops *ctx, u32 callbacks)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | callbacks);
}

static __always_inline void begin(struct bpf_sock_ops *ctx, struct fp_flow *flow)
{
	u32 side = ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB ? FP_FLOW_PASSIVE : 0;

	if (paths_version() && (!flow || is_learned(flow->rule_id)))
		ask_for(ctx, BPF_SOCK_OPS_RTT_CB_FLAG);
	if (!flow) {
		count(FP_COUNT_PASSED);
		return;
	}
	/* A socket may be used for one connection after another. */
	flow->seen_ns = bpf_ktime_get_ns();
	flow->flags &= FP_FLOW_RUDE | FP_FLOW_WITHHELD | FP_FLOW_PACED | FP_FLOW_PACING_SET;
	flow->flags |= side | FP_FLOW_ESTABLISHED;
	flow->base_rtt_us = 0;
	flow->bdp_bytes = 0;
	ask_for(ctx, BPF_SOCK_OPS_STATE_CB_FLAG);
	count(FP_COUNT_MET);
}

/* A global function, as leave_share(). */
__noinline int note_start(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct fp_flow *flow = tp ? bpf_sk_storage_get(&fp_flows, sk, NULL, 0) : NULL;
	struct fp_path_key key = {};

	if (!flow)
		return 0;
	fill_path_key(&key, tp);
	note_path(flow, &key);
	if (FP_IS_GIVEN(&flow->wanted, FP_INITIAL_RATE) &&
	    may_start_at_rate(&key, tp->srtt_us >> 3))
		flow->flags |= FP_FLOW_AT_RATE;
	return 0;
}

static __always_inline int is_ours(const struct tcp_sock *tp)
{
	return is_named_as_ours(tp->inet_conn.icsk_ca_ops->name);
}

static __always_inline int was_given_law(struct tcp_sock *tp, const struct fp_flow *flow)
{
	return flow && flow->law_set[0] && has_law(tp, flow->law_set);
}

/*
 * The law that the program chose, or the namespace's own: 1 when it has it now. A law of ours is
 * about to go with the rest.
 */
static __always_inline int lose_law(void *target, struct fp_flow *flow,
				    const u8 otherwise[FP_LAW_LEN])
{
	int error = -EINVAL;

	if (flow && flow->law_before[0] && !is_named_as_ours((const char *)flow->law_before))
		error = set_law(target, flow->law_before);
	if (error)
		error = set_law(target, otherwise);
	if (flow)
		flow->law_set[0] = 0;
	return error == 0;
}

/* A flow whose rule is gone, or gives no law any more, loses the law that it was given. */
static __always_inline void lose_law_of_before(void *target, void *sk, struct tcp_sock *tp,
					       struct fp_flow *old, const struct fp_flow *flow,
					       int had_rule, const u8 otherwise[FP_LAW_LEN])
{
	if (flow ? FP_IS_GIVEN(&flow->wanted, FP_LAW) || is_not_polite(tp) : !had_rule)
		return;
	if (was_given_law(tp, old) || (rude_of(sk) && is_ours(tp)))
		lose_law(target, old, otherwise);
}

/* Whether something else is known of the flow's path than what it has. A rule of the file goes before. */
static __always_inline int is_out_of_date(struct tcp_sock *tp, const struct fp_flow *flow)
{
	u32 has = flow ? flow->rule_id : FP_NO_RULE;

	return (has == FP_NO_RULE || is_learned(has)) && is_policy_live() &&
	       learned_rule(tp) != has;
}

static __always_inline enum fp_stage stage_of(u32 op)
{
	switch (op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		return FP_BEFORE_SYN;
	case BPF_SOCK_OPS_RTT_CB:
		return FP_LIVE;
	default:
		return FP_ESTABLISHED;
	}
}

/* A flow met its path again. A global function, as leave_share(). */
__noinline int follow_path(struct bpf_sock_ops *ctx, u32 had_rule)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct fp_flow *flow = tp ? bpf_sk_storage_get(&fp_flows, sk, NULL, 0) : NULL;
	const struct net *net;
	struct fp_law_text hosts;
	int has_rule;

	if (!flow)
		return 0;
	has_rule = flow->rule_id != FP_NO_RULE;
	net = tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net;
	__builtin_memcpy(hosts.text, net->ipv4.tcp_congestion_control->name, FP_LAW_LEN);
	lose_law_of_before(ctx, sk, tp, flow, has_rule ? flow : NULL, had_rule, hosts.text);
	if (!has_rule || flow->flags & FP_FLOW_ESTABLISHED)
		return 0;
	flow->seen_ns = bpf_ktime_get_ns();
	flow->flags |= FP_FLOW_ADOPTED | FP_FLOW_ESTABLISHED;
	ask_for(ctx, BPF_SOCK_OPS_STATE_CB_FLAG);
	return 0;
}

/* A flow of a rule that others look for in storage, or whose law does, has it from its begin. */
static __always_inline int may_be_new(u32 rule_id)
{
	u32 kept = 1u << FP_DIVIDE | 1u << FP_OVERRIDE_APPLICATION | 1u << FP_PACING;
	struct fp_rule *rule = bpf_map_lookup_elem(&fp_rules, &rule_id);

	return rule && !is_learned(rule_id) && !rule->has_phases && !(rule->given & kept) &&
	       rule->value[FP_RUDENESS] == FP_RUDE_NEVER;
}

/* Where the fp_flow of a flow without storage is, or is to be; NULL: it has no rule, or nothing can be kept of it. */
static __always_inline struct fp_flow *begun_flow_of(void *sk, u64 cookie, u32 rule_id)
{
	struct fp_flow *flow;

	flow = may_be_new(rule_id) ? claim(cookie) : keep(sk, cookie);
	return flow || rule_id == FP_NO_RULE ? flow : flow_of(sk);
}

/* A global function, as leave_share(), for which a flow's two places are one; `rule_id` may be none. */
__noinline int meet_in(struct bpf_sock_ops *ctx, struct fp_flow *flow, u32 rule_id, u32 stage)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct fp_rule *rule;
	u32 id = rule_id;

	if (!tp || !flow)
		return 0;
	rule = bpf_map_lookup_elem(&fp_rules, &id);
	if (rule)
		meet_rule(flow, ctx, sk, tp, id, rule, stage);
	else
		leave_rule(flow, tp, ctx, sk);
	if (stage == FP_ESTABLISHED)
		begin(ctx, rule ? flow : NULL);
	return 0;
}

/*
 * A flow begins, or one that lives follows what is learned of its path. One call of meet_in() for all: it is most of this
 * program, which a short flow reads into the cache.
 */
static __always_inline void on_meeting(struct bpf_sock_ops *ctx)
{
	enum fp_stage stage = stage_of(ctx->op);
	u64 cookie = bpf_get_socket_cookie(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	u32 had_rule = 0, rule_id = FP_NO_RULE;
	struct fp_flow *flow;

	if (!tp)
		return;
	flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	if (stage == FP_LIVE) {
		if (!flow)
			flow = keep(sk, cookie);
		if (!is_out_of_date(tp, flow))
			return;
		had_rule = flow && flow->rule_id != FP_NO_RULE;
	}
	if (is_policy_live())
		rule_id = meet_policy(ctx, sk, tp);
	if (!flow)
		flow = begun_flow_of(sk, cookie, rule_id);
	if (flow)
		meet_in(ctx, flow, rule_id, stage);
	else if (stage == FP_ESTABLISHED)
		begin(ctx, NULL);
	if (stage == FP_LIVE)
		follow_path(ctx, had_rule);
	else if (stage == FP_ESTABLISHED && is_learned(rule_id))
		note_start(ctx);
}

/* The SYN depends on no rule, nor on what is learned. */
static __always_inline int is_syn_free(void)
{
	u32 zero = 0;
	struct fp_control *control = bpf_map_lookup_elem(&fp_control, &zero);

	return !control || !control->generation ||
	       (!(control->flags & FP_BEFORE_SYN_TOO) && !paths_version());
}

/* A global function, as meet_in(). */
__noinline int say_end(struct bpf_sock_ops *ctx, struct fp_flow *flow)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct fp_flow_record *r;

	if (!tp || !flow)
		return 0;
	r = bpf_ringbuf_reserve(&fp_events, sizeof(*r), 0);
	if (r) {
		r->kind = FP_EVENT_FLOW_END;
		r->tcp.cookie = bpf_get_socket_cookie(ctx);
		fill_record(r, tp, flow, bpf_sk_storage_get(&fp_asked, sk, NULL, 0),
			    bpf_sk_storage_get(&fp_rudes, sk, NULL, 0));
		bpf_ringbuf_submit(r, FP_WAKE_FLAG(r));
	} else {
		count(FP_COUNT_LOST);
	}
	leave_share(flow);
	flow->flags &= ~FP_FLOW_ESTABLISHED;
	return 0;
}

static __always_inline void on_close(struct bpf_sock_ops *ctx)
{
	u64 cookie = bpf_get_socket_cookie(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct fp_flow *flow;

	if (!sk)
		return;
	flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	if (!flow)
		flow = new_flow_of(cookie);
	if (!flow || !(flow->flags & FP_FLOW_ESTABLISHED))
		return;
	say_end(ctx, flow);
	end_new(cookie);
}

SEC("sockops")
int tune(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (is_syn_free())
			break;
		/* fall through */
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_RTT_CB:
		on_meeting(ctx);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[1] == BPF_TCP_CLOSE)
			on_close(ctx);
		break;
	}
	return 1;
}

/* Of a flow that lives: in storage, from now on if not before. */
static __always_inline struct fp_flow *kept_flow_of(struct tcp_sock *tp)
{
	keep(tp, cookie_of(tp));
	return bpf_sk_storage_get(&fp_flows, tp, NULL, 0);
}

static __always_inline int release_flow(struct tcp_sock *tp, const struct fp_walk *walk)
{
	struct fp_asked *asked = bpf_sk_storage_get(&fp_asked, tp, NULL, 0);
	struct fp_flow *flow = kept_flow_of(tp);

	if (asked)
		honour_asked(tp, asked, NULL, FP_NO_RULE);
	if (flow)
		leave_rule(flow, tp, tp, tp);
	return (is_ours(tp) || was_given_law(tp, flow)) && lose_law(tp, flow, walk->law);
}

static __always_inline int reshare_flow(struct tcp_sock *tp)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, tp, NULL, 0);
	struct fp_rule *rule = flow ? bpf_map_lookup_elem(&fp_rules, &flow->rule_id) : NULL;
	u64 send, receive;

	if (!rule || !(flow->flags & FP_FLOW_ESTABLISHED) || !FP_IS_GIVEN(rule, FP_DIVIDE))
		return 0;
	send = flow->wanted.value[FP_SEND_BUFFER];
	receive = flow->wanted.value[FP_RECEIVE_BUFFER];
	if (send != share_of(rule, FP_SEND_BUFFER, flow->rule_id))
		give_send_buffer(flow, tp, tp, rule);
	if (receive != share_of(rule, FP_RECEIVE_BUFFER, flow->rule_id))
		give_receive_buffer(flow, tp, tp, rule, FP_LIVE);
	return send != flow->wanted.value[FP_SEND_BUFFER] ||
	       receive != flow->wanted.value[FP_RECEIVE_BUFFER];
}

static __always_inline int rude_again(struct tcp_sock *tp)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, tp, NULL, 0);
	struct fp_rule *rule = flow ? bpf_map_lookup_elem(&fp_rules, &flow->rule_id) : NULL;
	struct fp_rude_flow *rude = rude_of(tp);
	int was_rude;

	if (!rule || !(flow->flags & FP_FLOW_ESTABLISHED))
		return 0;
	was_rude = is_not_polite(tp);
	decide_rudeness(flow, tp, rude, rule, FP_LIVE);
	make_rude_or_polite(flow, tp, tp, tp, rude, rule);
	return was_rude != is_not_polite(tp);
}

/*
 * Has sockops call at the end of a flow that began without it; other programs'
 * callbacks stay.
 */
static __always_inline void adopt(struct fp_flow *flow, struct tcp_sock *tp)
{
	u32 callbacks = 0;

	flow->seen_ns = bpf_ktime_get_ns();
	flow->flags |= FP_FLOW_ADOPTED | FP_FLOW_ESTABLISHED;
	bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &callbacks, sizeof(callbacks));
	callbacks |= BPF_SOCK_OPS_STATE_CB_FLAG;
	bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &callbacks, sizeof(callbacks));
}

static __always_inline int meet_again(struct tcp_sock *tp, const struct fp_walk *walk)
{
	struct fp_flow *old = kept_flow_of(tp);
	int is_known = old && old->flags & FP_FLOW_ESTABLISHED;
	int had_rule = old && old->rule_id != FP_NO_RULE;
	struct fp_flow *flow = meet(tp);

	if (flow && !is_known)
		adopt(flow, tp);
	lose_law_of_before(tp, tp, tp, old, flow, had_rule, walk->law);
	return flow || had_rule;
}

SEC("iter/tcp")
int walk(struct bpf_iter__tcp *ctx)
{
	u32 zero = 0;
	struct sock_common *skc = ctx->sk_common;
	struct fp_walk *walk = bpf_map_lookup_elem(&fp_walk, &zero);
	struct tcp_sock *tp;
	u32 state;

	if (!skc || !walk)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	state = skc->skc_state;
	walk->seen++;
	if (walk->mode == FP_WALK_RELEASE)
		walk->changed += release_flow(tp, walk);
	else if (state == BPF_TCP_LISTEN || state == BPF_TCP_SYN_SENT || state == BPF_TCP_CLOSE)
		return 0;
	else if (!is_in_cgroup(tp, walk->cgroup_id))
		return 0;
	else if (walk->mode == FP_WALK_RUDE)
		walk->changed += rude_again(tp);
	else if (walk->mode == FP_WALK_SHARE)
		walk->changed += reshare_flow(tp);
	else
		walk->changed += meet_again(tp, walk);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
