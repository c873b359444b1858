/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may go on without congestion control: the one place that permits it, asked by the
 * socket option, when a flow meets the policy, and at every ACK of a rude flow. Reads the
 * socket by BPF_CORE_READ, for the option's programs know it only as struct bpf_sock.
 * Start at may_be_rude().
 */
#ifndef FATPATH_RUDE_H
#define FATPATH_RUDE_H

#include "settings.h"

static __always_inline struct fp_rude_flow *rude_of(void *sk)
{
	return bpf_sk_storage_get(&fp_rudes, sk, NULL, 0);
}

static __always_inline int is_gate_open(void)
{
	u32 zero = 0;
	struct fp_rude_gate *gate = bpf_map_lookup_elem(&fp_rude_gate, &zero);

	return gate && gate->is_open;
}

static __always_inline u32 owner_of(const struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_uid.val);
}

static __always_inline int is_listed(u32 rule_id, u32 user)
{
	struct fp_rude_user key = { .rule_id = rule_id, .user = user };

	return !!bpf_map_lookup_elem(&fp_rude_users, &key);
}

static __always_inline struct dst_entry *route_of(const struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_dst_cache);
}

/* IPsec, or a route with `encap`: the device sees no TCP segments of the flow. */
static __always_inline int is_encapsulated(const struct dst_entry *route)
{
	if (bpf_core_field_exists(route->xfrm) && BPF_CORE_READ(route, xfrm))
		return 1;
	return BPF_CORE_READ(route, lwtstate) != NULL;
}

/* Other namespaces get the inode of one that is gone, but not its cookie. */
static __always_inline int does_netns_mark(const struct sock *sk, u32 netns)
{
	struct fp_marked *marked = bpf_map_lookup_elem(&fp_marked_netns, &netns);

	return marked && marked->interfaces &&
	       marked->cookie == BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
}

/* A rude flow that nobody marks is impossible: the device of its own route has to mark. */
static __always_inline int is_marked(const struct sock *sk, const struct dst_entry *route)
{
	struct fp_interface device = {
		.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum),
		.ifindex = BPF_CORE_READ(route, dev, ifindex),
	};
	struct fp_mark *mark = bpf_map_lookup_elem(&fp_marks, &device);

	return mark && mark->is_whole && !is_encapsulated(route) &&
	       does_netns_mark(sk, device.netns);
}

/* `user` asked for it; a socket that was passed to another process also has an owner, who may be another user. */
static __always_inline int is_permitted(const struct sock *sk, u32 rule_id,
					const struct fp_rule *rule, u32 user)
{
	if (!is_gate_open() || !rule || rule->value[FP_RUDENESS] == FP_RUDE_NEVER)
		return 0;
	return !FP_IS_GIVEN(rule, FP_RUDE_USERS) ||
	       (is_listed(rule_id, user) && is_listed(rule_id, owner_of(sk)));
}

static __always_inline int may_be_rude(const struct sock *sk, u32 rule_id,
				       const struct fp_rule *rule, u32 user)
{
	struct dst_entry *route = route_of(sk);

	return is_permitted(sk, rule_id, rule, user) && route && is_marked(sk, route);
}

/* Once found out, the connection stays polite. */
static __always_inline void find_unmarked(struct fp_rude_flow *rude)
{
	if (!(rude->flags & FP_RUDE_UNMARKED))
		count(FP_COUNT_UNMARKED);
	rude->flags |= FP_RUDE_UNMARKED;
}

/* May a flow go on that was rude until now? Without a route it has sent nothing another way yet. */
static __always_inline int may_stay_rude(const struct sock *sk, const struct fp_flow *flow,
					 struct fp_rude_flow *rude)
{
	u32 rule_id = flow ? flow->rule_id : FP_NO_RULE;
	struct fp_rule *rule = bpf_map_lookup_elem(&fp_rules, &rule_id);
	struct dst_entry *route = route_of(sk);

	if (rude->flags & FP_RUDE_UNMARKED || !is_permitted(sk, rule_id, rule, rude->user))
		return 0;
	if (route && !is_marked(sk, route))
		find_unmarked(rude);
	return !(rude->flags & FP_RUDE_UNMARKED);
}

/* The rude flows of a rule share its rude_total_rate. */
static __always_inline void join_rude_share(struct fp_rude_flow *rude, u32 rule_id)
{
	struct fp_share *share = bpf_map_lookup_elem(&fp_rude_shares, &rule_id);

	if (!share || rude->flags & FP_RUDE_COUNTED)
		return;
	rude->flags |= FP_RUDE_COUNTED;
	rude->counted_rule = rule_id;
	__sync_fetch_and_add(&share->flows, 1);
}

static __always_inline void leave_rude_share(struct fp_rude_flow *rude)
{
	u32 rule_id = rude->counted_rule;
	struct fp_share *share = bpf_map_lookup_elem(&fp_rude_shares, &rule_id);

	if (!share || !(rude->flags & FP_RUDE_COUNTED))
		return;
	rude->flags &= ~FP_RUDE_COUNTED;
	take_off(share);
}

static __always_inline int set_kernels_reno(void *target)
{
	struct fp_law_text reno = { "reno" };

	return set_law(target, reno.text);
}

/*
 * The flow gets the law of its fair window, and with it that window: see rude_release()
 * in rude.bpf.c. The kernel's own Reno is always there, but keeps no F on the way to it.
 */
static __always_inline int set_fair_law(void *target, const struct fp_rule *rule,
					struct fp_rude_flow *rude)
{
	struct fp_law_text fair = { "fp_reno" };

	if (rule && FP_IS_GIVEN(rule, FP_LAW))
		__builtin_memcpy(&fair, rule->law, sizeof(fair));
	if (!set_law(target, fair.text))
		return 0;
	if (rude)
		rude->mode = FP_POLITE;
	return set_kernels_reno(target);
}

/*
 * A flow that went polite, and is so from now on, has its fair law already: it gets the
 * window on the way from that law to another (law_release() in laws.bpf.c).
 */
static __always_inline void stop_going_polite(void *target, const struct fp_rule *rule,
					      struct fp_rude_flow *rude)
{
	rude->mode = FP_POLITE;
	set_kernels_reno(target);
	set_fair_law(target, rule, rude);
}

static __always_inline int set_rude_law(void *target)
{
	struct fp_law_text rude = { "fp_rude" };

	return set_law(target, rude.text);
}

/*
 * rude_init() has the last word, but cannot set another law itself: the kernel lets nobody
 * who is called by a change of law change it again.
 */
static __always_inline int become_rude(void *target, const struct fp_rule *rule,
				       struct fp_rude_flow *rude, u32 user)
{
	rude->user = user;
	rude->mode = FP_RUDE;
	if (!set_rude_law(target) && rude->mode == FP_RUDE)
		return 0;
	rude->mode = FP_POLITE;
	set_fair_law(target, rule, rude);
	return -EPERM;
}

static __always_inline int has_rude_law(struct tcp_sock *tp)
{
	struct fp_law_text rude = { "fp_rude" };

	return has_law(tp, rude.text);
}

#endif
