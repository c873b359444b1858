/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rude TCP: a flow without congestion control, by permission, as struct_ops fp_rude
 * (Weigle, Feng, "Enhancing TCP Performance for Dedicated Clusters and Grids").
 *
 * With cong_control the kernel lowers no window by itself; what it sends again, and
 * when, stays its own (SACK, RACK). The window is the peer's, the pacing bounds the rate
 * unless the rule has "unlimited", and the fair window F is tracked too (cc/rude.h). At
 * every ACK the flow's permission to be rude is checked again; a flow without it gets the
 * law of its fair window, and, in rude_release(), that window.
 *
 * It refuses a flow that did not ask (TCP_RUDE, or its rule): one that merely selects
 * this law by TCP_CONGESTION gets the fair law. Start at rude_cong_control().
 */
#include "include/rude_flow.h"
#include "include/pacing.h"

/* A flow whose segments leave its device without marks, or by another, is found out after so long. */
#define LOOK_FOR_MARKS_US 1000000ull

static __always_inline u64 rate_sample(const struct tcp_sock *tp)
{
	u64 bytes = (u64)tp->rate_delivered * tp->mss_cache;

	return tp->rate_interval_us ? bytes * 1000000 / tp->rate_interval_us : 0;
}

/* The kernel's pacing counts what a segment carries, without its headers. */
static __always_inline void look(struct tcp_sock *tp, struct cc_rude_now *now)
{
	u32 mss_bytes = tp->mss_cache ? tp->mss_cache : 1;

	now->now_us = tp->tcp_mstamp;
	now->rate_bytes_per_s = rate_sample(tp);
	now->delivered_pkts = tp->delivered;
	now->lost_pkts = tp->lost;
	now->in_flight_pkts = in_flight_pkts(tp);
	now->peer_window_pkts = tp->snd_wnd / mss_bytes;
	now->max_window_pkts = clamp_pkts(tp);
	now->srtt_us = tp->srtt_us >> 3;
	now->min_rtt_us = tp->rtt_min.s[0].v;
	now->mss_bytes = mss_bytes;
	now->wire_bytes = mss_bytes;
}

static __always_inline u64 not_zero(u64 bytes_per_s)
{
	return bytes_per_s ? bytes_per_s : 1;
}

static __always_inline u32 packet_bytes(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	return tp->mss_cache + tp->tcp_header_len + icsk->icsk_af_ops->net_header_len +
	       icsk->icsk_ext_hdr_len;
}

/* Of a rate of IP packets, what pacing counts; 0, no bound, stays so. */
static __always_inline u64 without_headers(struct tcp_sock *tp, u64 bytes_per_s)
{
	u32 whole_bytes;

	if (!bytes_per_s)
		return 0;
	whole_bytes = packet_bytes(tp);
	return whole_bytes ? not_zero(cc_scaled(bytes_per_s, tp->mss_cache, whole_bytes))
			   : bytes_per_s;
}

/* The flow's part of rude_total_rate; 0 = no bound. */
static __always_inline u64 part_of_total(const struct fp_rule *rule, u32 rule_id)
{
	struct fp_share *share = bpf_map_lookup_elem(&fp_rude_shares, &rule_id);
	u64 flows = share && (s64)share->flows > 0 ? share->flows : 1;
	u64 total = rule->value[FP_RUDE_TOTAL_RATE] / 8;

	return total ? not_zero(total / flows) : 0;
}

/*
 * Twice what the window needs, as the kernel gives a flow in slow start (tcp_update_pacing_rate()). Without any
 * rate a flow under sch_fq would put its whole window into the host's own queue (tcp_small_queue_check()).
 */
static __always_inline u64 unlimited_rate(const struct cc_rude_now *now)
{
	u64 window_bytes = (u64)cc_rude_cwnd_pkts(now) * now->mss_bytes;

	return not_zero(cc_scaled(2 * window_bytes, 1000000, cc_rude_srtt_us(now)));
}

/* Of an unlimited flow the kernel's own pacing ends, unless its rule bounds the total. */
static __always_inline void set_pace(struct sock *sk, const struct rude_state *s,
				     const struct cc_rude_now *now, const struct fp_rule *rule,
				     u32 rule_id)
{
	u64 most = without_headers(tcp(sk), part_of_total(rule, rule_id));
	int is_unlimited = rule->value[FP_RUDE_RATE] == FP_RUDE_UNLIMITED;
	u64 share, rate;

	if (is_unlimited) {
		rate = unlimited_rate(now);
	} else {
		share = without_headers(tcp(sk), rule->value[FP_RUDE_RATE] / 8);
		rate = cc_rude_pacing_bytes_per_s(&s->rude, now, share);
	}
	pace(sk, most && most < rate ? most : rate);
	if (is_unlimited && !most)
		unpace(sk);
}

/* What leaves next, and how fast. */
static __always_inline void send_on(struct sock *sk, struct rude_state *s,
				    struct fp_rude_flow *flow, const struct cc_rude_now *now,
				    const struct fp_rule *rule)
{
	struct tcp_sock *tp = tcp(sk);

	tp->snd_cwnd = cc_rude_cwnd_pkts(now);
	set_pace(sk, s, now, rule, flow->counted_rule);
	flow->fair_cwnd_pkts = s->rude.fair.cwnd_pkts;
}

/* Segments went out, and not half as many were marked: some may go another way. */
static __always_inline int is_unmarked(struct tcp_sock *tp, const struct rude_state *s,
				       const struct fp_rude_flow *flow)
{
	u32 marked_pkts = flow->marked_pkts - s->marked_pkts;
	u32 sent_pkts = tp->data_segs_out - s->sent_pkts;

	return marked_pkts < (sent_pkts + 1) / 2;
}

/* At what was sent since the last look. */
static __always_inline void look_for_marks(struct tcp_sock *tp, struct rude_state *s,
					   struct fp_rude_flow *flow)
{
	if (is_unmarked(tp, s, flow))
		find_unmarked(flow);
	s->looked_us = tp->tcp_mstamp;
	s->sent_pkts = tp->data_segs_out;
	s->marked_pkts = flow->marked_pkts;
}

static __always_inline int is_rude(struct sock *sk, const struct fp_flow *flow,
				   struct fp_rude_flow *rude)
{
	return rude && rude->mode == FP_RUDE && may_stay_rude(sk, flow, rude);
}

static __always_inline void begin(struct tcp_sock *tp, struct rude_state *s,
				  const struct fp_rude_flow *flow, const struct cc_rude_now *now)
{
	struct cc_window polite = window_of(tp);

	/* PRR is on the way from one to the other (RFC 6937). */
	if (is_in_reduction(tp) && polite.cwnd_pkts > polite.ssthresh_pkts)
		polite.cwnd_pkts = polite.ssthresh_pkts;
	if (s->keeps_fair)
		cc_rude_resume(&s->rude, now);
	else
		cc_rude_begin(&s->rude, &polite, now);
	s->keeps_fair = 1;
	s->begins_app_limited = 0;
	s->app_limited_until_pkts = tp->delivered - 1;
	s->looked_us = now->now_us;
	s->sent_pkts = tp->data_segs_out;
	s->marked_pkts = flow->marked_pkts;
}

/* 1 = the flow may not be rude, and has the fair law now. */
static __always_inline int leave(struct sock *sk, const struct fp_flow *flow,
				 struct fp_rude_flow *rude)
{
	u32 rule_id = flow ? flow->rule_id : FP_NO_RULE;

	if (is_rude(sk, flow, rude))
		return 0;
	if (rude && rude->mode == FP_RUDE)
		rude->mode = FP_POLITE;
	set_fair_law(sk, bpf_map_lookup_elem(&fp_rules, &rule_id), rude);
	return 1;
}

SEC("struct_ops")
void BPF_PROG(rude_init, struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct fp_rude_flow *rude = rude_of(sk);
	struct cc_rude_now now = {};
	struct rude_state *s;
	struct fp_rule *rule;

	if (leave(sk, flow, rude) || !flow || !rude)
		return;
	s = bpf_sk_storage_get(&fp_rude_states, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	rule = bpf_map_lookup_elem(&fp_rules, &flow->rule_id);
	if (!s || !rule) {
		rude->mode = FP_POLITE;
		return;
	}
	look(tcp(sk), &now);
	begin(tcp(sk), s, rude, &now);
	join_rude_share(rude, flow->rule_id);
	send_on(sk, s, rude, &now, rule);
}

/* The flow's next law, whichever it is, finds the fair window, or R when it goes polite nicely. */
SEC("struct_ops")
void BPF_PROG(rude_release, struct sock *sk)
{
	struct fp_rude_flow *rude = rude_of(sk);
	struct rude_state *s = rude_state_of(sk);
	struct tcp_sock *tp = tcp(sk);
	u32 r_pkts;

	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	unpace(sk);
	if (!rude || !s || !s->keeps_fair)
		return;
	/* Or a flow that is polite now and then would never be found out. */
	look_for_marks(tp, s, rude);
	leave_rude_share(rude);
	if (rude->mode != FP_GOING_POLITE || in_flight_pkts(tp) <= s->rude.fair.cwnd_pkts) {
		become_polite(tp, s, rude);
		return;
	}
	r_pkts = cc_rude_off_nicely(&s->rude, in_flight_pkts(tp));
	tp->snd_cwnd = r_pkts;
	tp->snd_ssthresh = r_pkts;
}

/*
 * Whether what is acknowledged was sent while the program had little to send, as is_app_limited of the
 * kernel's rate sample says. tp->rate_app_limited belongs to the best sample, and tp->app_limited ends with the
 * first acknowledgement: what was in flight then was sent before it.
 */
static __always_inline int is_app_limited(const struct tcp_sock *tp, struct rude_state *s)
{
	if (tp->app_limited || s->begins_app_limited)
		s->app_limited_until_pkts = tp->delivered + in_flight_pkts(tp);
	s->begins_app_limited = 0;
	if ((s32)(s->app_limited_until_pkts - tp->delivered) >= 0)
		return 1;
	/* Follows, or would lie ahead again after 2^31 segments. */
	s->app_limited_until_pkts = tp->delivered - 1;
	return 0;
}

static __always_inline void acked(struct sock *sk, struct rude_state *s, struct fp_rude_flow *rude,
				  const struct fp_rule *rule)
{
	struct tcp_sock *tp = tcp(sk);
	struct rude_ack ack = {};

	fill_ack(&ack, tp, rule);
	look(tp, &ack.now);
	ack.now.rate_is_app_limited = is_app_limited(tp, s);
	s->rude.fair.clamp_pkts = clamp_pkts(tp);
	rude_acked(&s->rude, &ack);
	send_on(sk, s, rude, &ack.now, rule);
}

/* Its arguments after the first differ before and after 6.10: tcp_sock has them too. */
SEC("struct_ops")
void BPF_PROG(rude_cong_control, struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct fp_rude_flow *rude = rude_of(sk);
	struct rude_state *s = rude_state_of(sk);
	struct fp_rule *rule;

	/* rude_init() did not begin with it. */
	if (rude && rude->mode == FP_RUDE && !(s && s->keeps_fair))
		rude->mode = FP_POLITE;
	if (rude && s && rude->mode == FP_RUDE &&
	    tcp(sk)->tcp_mstamp - s->looked_us >= LOOK_FOR_MARKS_US)
		look_for_marks(tcp(sk), s, rude);
	if (leave(sk, flow, rude) || !flow || !rude || !s)
		return;
	rule = bpf_map_lookup_elem(&fp_rules, &flow->rule_id);
	if (!rule)
		return;
	if (rude->counted_rule != flow->rule_id)
		leave_rude_share(rude);
	join_rude_share(rude, flow->rule_id);
	acked(sk, s, rude, rule);
}

/*
 * tcp_enter_loss() has just left one segment. A path with a smaller MTU enters the same
 * state (tcp_simple_retransmit()), and leaves the window alone.
 */
static __always_inline int is_timed_out(struct tcp_sock *tp)
{
	return tp->snd_cwnd == in_flight_pkts(tp) + 1;
}

SEC("struct_ops")
void BPF_PROG(rude_set_state, struct sock *sk, u8 new_state)
{
	struct rude_state *s = rude_state_of(sk);
	struct fp_rule *rule = rule_of(sk);
	struct tcp_sock *tp = tcp(sk);
	struct cc_rude_now now = {};
	struct law_in_use use = {};

	if (!s || !s->keeps_fair || !rule)
		return;
	use_fair_law(rule, &use);
	look(tp, &now);
	/* ECN's echo, a drop in the host, or a loss that its probe made good. */
	if (new_state == TCP_CA_CWR)
		cc_rude_congested(use.law, use.values, &s->rude, &now);
	if (new_state == TCP_CA_LOSS && is_timed_out(tp)) {
		cc_rude_timed_out(use.law, use.values, &s->rude, &now);
		tp->snd_cwnd = cc_rude_cwnd_pkts(&now);
	}
}

/* As the window of a polite flow would in a pause; the host's own way is taken to be the usual. */
static __always_inline void decay(struct tcp_sock *tp, struct rude_state *s,
				  const struct fp_rule *rule)
{
	struct cc_start start = start_of(rule, tp);
	u32 idle_ticks = (u32)bpf_jiffies64() - tp->lsndtime;

	/* Only the ratio of the two times counts. */
	cc_idle_restart(&s->rude.fair, &start, idle_ticks, tp->inet_conn.icsk_rto,
			restart_window_pkts(rule, 0));
}

/* After a pause: the gate may have closed meanwhile, and nothing rude shall leave. */
SEC("struct_ops")
void BPF_PROG(rude_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct rude_state *s = rude_state_of(sk);
	struct fp_rule *rule = rule_of(sk);

	if (event != CA_EVENT_TX_START)
		return;
	/* Before its acknowledgement the kernel forgets it. */
	if (s && s->keeps_fair)
		s->begins_app_limited = tcp(sk)->app_limited != 0;
	if (s && s->keeps_fair && rule)
		decay(tcp(sk), s, rule);
	leave(sk, flow, rude_of(sk));
}

/* Nothing is reduced: the recovery that begins is the kernel's alone. */
SEC("struct_ops")
u32 BPF_PROG(rude_ssthresh, struct sock *sk)
{
	struct rude_state *s = rude_state_of(sk);

	if (s && s->keeps_fair)
		cc_rude_recovery_begins(&s->rude);
	return tcp(sk)->snd_ssthresh;
}

SEC("struct_ops")
u32 BPF_PROG(rude_undo_cwnd, struct sock *sk)
{
	struct rude_state *s = rude_state_of(sk);
	struct fp_rule *rule = rule_of(sk);
	struct law_in_use use = {};

	if (s && s->keeps_fair && rule) {
		use_fair_law(rule, &use);
		cc_rude_undone(use.law, &s->rude);
	}
	return tcp(sk)->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops fp_rude = {
	.init = (void *)rude_init,
	.release = (void *)rude_release,
	.cong_control = (void *)rude_cong_control,
	.set_state = (void *)rude_set_state,
	.cwnd_event = (void *)rude_cwnd_event,
	.ssthresh = (void *)rude_ssthresh,
	.undo_cwnd = (void *)rude_undo_cwnd,
	.name = "fp_rude",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
