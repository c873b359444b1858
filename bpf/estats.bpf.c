/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The instruments: each flow that is sampled says what it is at its own round trips, at
 * most once an interval, and at what happens to it; the rest is read by a walk. One struct
 * fp_sample goes into a ring buffer of their own, which nobody but the daemon reads. An
 * idle flow costs nothing.
 *
 * It changes nothing of a flow but its sockops callbacks, to which it adds its own: those
 * of other programs (tune.bpf.c) stay. It takes none away, for whose they are nobody knows.
 *
 * Start reading at sample_flow().
 */
#include "include/kernel.h"
#include "include/choose.h"
#include "include/estats.h"

/* Linux 6.12: bpf_setsockopt can switch the callbacks of a socket outside sockops. */
#ifndef TCP_BPF_SOCK_OPS_CB_FLAGS
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
#endif

#define CALLBACKS                                                                                  \
	(BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG | BPF_SOCK_OPS_RETRANS_CB_FLAG |      \
	 BPF_SOCK_OPS_STATE_CB_FLAG)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_samples SEC(".maps");

/* The reader looks by itself; it is woken when so much waits (see wake_flag()). */
#define WAKE_BYTES (2 * 1024 * 1024)

/* TCP_INFINITE_SSTHRESH: a law that goes by rates (bbr) never sets another. */
#define INFINITE_SSTHRESH 0x7fffffff

/* Who is, was or wants to be rude has an fp_flow (turn_on(), make_rude()): most sockets have neither. */
static __always_inline struct fp_rude_flow *rude_of_flow(const struct fp_flow *flow, void *sk)
{
	return flow ? bpf_sk_storage_get(&fp_rudes, sk, NULL, 0) : NULL;
}

/* Too large for the stack; one walk a processor at a time writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_sample);
} scratch SEC(".maps");

/* ca_state: during tcp_set_ca_state() the flow has the old one still. */
static __always_inline void emit(enum fp_sample_kind kind, void *sk, u64 cookie,
				 struct tcp_sock *tp, struct fp_estats *e, int ca_state)
{
	struct fp_sample *r = bpf_ringbuf_reserve(&fp_samples, sizeof(*r), 0);
	const struct fp_flow *flow;
	u64 waiting;

	e->sampled_ns = tp->tcp_clock_cache;
	if (!r) {
		count(FP_COUNT_SAMPLES_LOST);
		return;
	}
	r->kind = kind;
	r->tcp.cookie = cookie;
	r->tcp.now_ns = bpf_ktime_get_ns();
	flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	fill_sample(r, tp, e, flow, rude_of_flow(flow, sk));
	if (ca_state >= 0)
		r->tcp.ca_state = ca_state;
	e->counted.rtt_us = 0;
	waiting = bpf_ringbuf_query(&fp_samples, BPF_RB_AVAIL_DATA);
	bpf_ringbuf_submit(r, waiting > WAKE_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	count(FP_COUNT_SAMPLES);
}

/* The kernel's clock of this event may be a little before the last sample's. */
static __always_inline int is_over(u64 since_ns, const struct tcp_sock *tp,
				   const struct fp_instruments *config)
{
	return (s64)(tp->tcp_clock_cache - since_ns) >= (s64)config->interval_ns;
}

static __always_inline void begin(struct fp_estats *e, struct tcp_sock *tp, u32 generation,
				  u32 flags)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->counted.begin_ns = bpf_ktime_get_ns();
	e->generation = generation;
	e->flags = flags;
	e->limited_by = BPF_CORE_READ_BITFIELD(tp, chrono_type);
}

/* What is kept of a flow that is sampled from now on; NULL: it is not. */
static __always_inline struct fp_estats *track(const struct fp_instruments *config, void *sk,
					       struct tcp_sock *tp, u32 flags)
{
	u32 admitted = admit(config, tp);
	struct fp_estats *e;

	if (!admitted) {
		/* The walks would count a flow that is there already again and again. */
		if (!(flags & FP_ESTATS_ADOPTED))
			count(FP_COUNT_UNSAMPLED);
		return NULL;
	}
	e = bpf_sk_storage_get(&fp_estats, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!e) {
		struct fp_estats none = { .flags = admitted };

		release(&none, tp);
		count(FP_COUNT_UNSAMPLED_NO_STORAGE);
		return NULL;
	}
	/* A passive opening with data in its SYN (TCP Fast Open) is walked by before it is established. */
	release(e, tp);
	begin(e, tp, config->generation, admitted | flags);
	return e;
}

static __always_inline struct fp_estats *on_established(struct bpf_sock_ops *ctx, void *sk,
							struct tcp_sock *tp,
							const struct fp_instruments *config)
{
	u32 side = ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB ? FP_ESTATS_PASSIVE : 0;
	struct fp_estats *e = NULL;

	if (is_wanted(config, sk, bpf_get_socket_cookie(ctx)))
		e = track(config, sk, tp, side);
	if (e)
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | CALLBACKS);
	return e;
}

static __always_inline void note_limit(struct fp_counted *c, struct tcp_sock *tp, u32 *before)
{
	u32 now = BPF_CORE_READ_BITFIELD(tp, chrono_type);

	if (now == *before)
		return;
	*before = now;
	if (now == TCP_CHRONO_BUSY)
		c->lim_trans_cwnd++;
	else if (now == TCP_CHRONO_RWND_LIMITED)
		c->lim_trans_rwin++;
	else if (now == TCP_CHRONO_SNDBUF_LIMITED)
		c->lim_trans_snd++;
}

/* 6.10 and later hand the measurement over. */
static __always_inline void note_rtt(struct fp_counted *c, const struct tcp_sock *tp, u32 given_us)
{
	u32 rtt_us = given_us ? given_us : tp->rack.rtt_us;

	c->rtt_us = rtt_us;
	c->sum_rtt_us += rtt_us;
	c->count_rtt++;
	if (rtt_us > c->max_rtt_us)
		c->max_rtt_us = rtt_us;
}

/* A new configuration may leave the flow out, or name it again. */
static __always_inline enum fp_sample_kind reconfigure(const struct fp_instruments *config,
						       void *sk, struct tcp_sock *tp, u64 cookie,
						       struct fp_estats *e)
{
	int was_tracked = e->flags & FP_ESTATS_TRACKED, is_tracked;
	u32 admitted = 0;

	e->generation = config->generation;
	is_tracked = is_wanted(config, sk, cookie);
	if (was_tracked && !is_tracked)
		release(e, tp);
	if (was_tracked || !is_tracked)
		return FP_SAMPLE_NOTHING;
	admitted = admit(config, tp);
	if (!admitted)
		return FP_SAMPLE_NOTHING;
	begin(e, tp, config->generation, admitted | FP_ESTATS_ADOPTED);
	return FP_SAMPLE_BEGIN;
}

static __always_inline enum fp_sample_kind on_round_trip(struct bpf_sock_ops *ctx,
							 struct tcp_sock *tp, struct fp_estats *e,
							 const struct fp_instruments *config)
{
	note_rtt(&e->counted, tp, ctx->args[0]);
	note_limit(&e->counted, tp, &e->limited_by);
	return is_over(e->sampled_ns, tp, config) ? FP_SAMPLE_INTERVAL : FP_SAMPLE_NOTHING;
}

/* RFC 4898 counts timeouts with a backoff of one apart from those that follow them. */
static __always_inline enum fp_sample_kind on_timeout(struct bpf_sock_ops *ctx, struct fp_estats *e)
{
	if (ctx->args[0])
		e->counted.subsequent_timeouts++;
	else
		e->counted.timeouts++;
	return FP_SAMPLE_TIMEOUT;
}

/* A burst of them is one event, with its number in the counters. */
static __always_inline enum fp_sample_kind
on_retransmission(struct tcp_sock *tp, struct fp_estats *e, const struct fp_instruments *config)
{
	if (!is_over(e->retrans_ns, tp, config))
		return FP_SAMPLE_NOTHING;
	e->retrans_ns = tp->tcp_clock_cache;
	return FP_SAMPLE_RETRANSMISSION;
}

static __always_inline enum fp_sample_kind happened(struct bpf_sock_ops *ctx, struct tcp_sock *tp,
						    struct fp_estats *e,
						    const struct fp_instruments *config)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_RTT_CB:
		return on_round_trip(ctx, tp, e, config);
	case BPF_SOCK_OPS_RTO_CB:
		return on_timeout(ctx, e);
	case BPF_SOCK_OPS_RETRANS_CB:
		return on_retransmission(tp, e, config);
	case BPF_SOCK_OPS_STATE_CB:
		return ctx->args[1] == BPF_TCP_CLOSE ? FP_SAMPLE_END : FP_SAMPLE_NOTHING;
	}
	return FP_SAMPLE_NOTHING;
}

static __always_inline enum fp_sample_kind on_event(struct bpf_sock_ops *ctx, void *sk,
						    struct tcp_sock *tp, struct fp_estats *e,
						    const struct fp_instruments *config)
{
	enum fp_sample_kind kind = FP_SAMPLE_NOTHING;

	if (e->generation != config->generation)
		kind = reconfigure(config, sk, tp, bpf_get_socket_cookie(ctx), e);
	if (kind != FP_SAMPLE_NOTHING || !(e->flags & FP_ESTATS_TRACKED))
		return kind;
	return happened(ctx, tp, e, config);
}

static __always_inline int is_establishment(u32 op)
{
	return op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ||
	       op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
}

/* The others come for every connection, and for request sockets. */
static __always_inline int is_ours(u32 op)
{
	return is_establishment(op) || op == BPF_SOCK_OPS_RTT_CB || op == BPF_SOCK_OPS_RTO_CB ||
	       op == BPF_SOCK_OPS_RETRANS_CB || op == BPF_SOCK_OPS_STATE_CB;
}

SEC("sockops")
int sample_flow(struct bpf_sock_ops *ctx)
{
	enum fp_sample_kind kind = FP_SAMPLE_BEGIN;
	struct fp_instruments *config = instruments();
	struct fp_estats *e;
	struct tcp_sock *tp;
	struct bpf_sock *sk;

	if (!config || !is_ours(ctx->op))
		return 1;
	sk = ctx->sk;
	tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	if (!tp)
		return 1;
	if (is_establishment(ctx->op))
		e = on_established(ctx, sk, tp, config);
	else
		e = bpf_sk_storage_get(&fp_estats, sk, NULL, 0);
	if (!e)
		return 1;
	if (!is_establishment(ctx->op))
		kind = on_event(ctx, sk, tp, e, config);
	if (kind == FP_SAMPLE_NOTHING)
		return 1;
	emit(kind, sk, bpf_get_socket_cookie(ctx), tp, e, -1);
	if (kind == FP_SAMPLE_END)
		release(e, tp);
	return 1;
}

/*
 * Whether the kernel has just lowered ssthresh: on the way from Open or Disorder, and in
 * tcp_enter_loss() also after another window was lost. A lowered path MTU sends again by
 * way of Loss too (tcp_simple_retransmit()), with nothing lowered: there high_seq is
 * snd_nxt already.
 */
static __always_inline int is_congestion_signal(struct tcp_sock *tp, u32 before, u32 now)
{
	if (before <= TCP_CA_DISORDER)
		return now == TCP_CA_LOSS ? tp->high_seq != tp->snd_nxt : now >= TCP_CA_CWR;
	if (now != TCP_CA_LOSS)
		return 0;
	return (s32)(tp->high_seq - tp->snd_una) <= 0 ||
	       (before == TCP_CA_LOSS && !tp->inet_conn.icsk_retransmits);
}

static __always_inline void note_signal(struct fp_counted *c, const struct tcp_sock *tp)
{
	c->cong_signals++;
	c->pre_cong_sum_cwnd_pkts += tp->prior_cwnd;
	if (tp->snd_ssthresh < INFINITE_SSTHRESH)
		c->post_cong_sum_ssthresh_pkts += tp->snd_ssthresh;
	c->pre_cong_sum_rtt_us += tp->rack.rtt_us;
}

/* In tcp_set_ca_state(), before the state is set and after ssthresh was. */
SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(state_set, struct sock *sk, u8 now)
{
	struct fp_estats *e = bpf_sk_storage_get(&fp_estats, sk, NULL, 0);
	struct fp_instruments *config = instruments();
	enum fp_sample_kind kind = FP_SAMPLE_STATE;
	struct tcp_sock *tp;
	u32 before;

	if (!e || !config || !(e->flags & FP_ESTATS_TRACKED))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	before = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	if (is_congestion_signal(tp, before, now)) {
		note_signal(&e->counted, tp);
		kind = FP_SAMPLE_CONGESTION;
	} else if (before == now || !is_over(e->state_ns, tp, config)) {
		return 0;
	} else {
		e->state_ns = tp->tcp_clock_cache;
	}
	emit(kind, sk, bpf_get_socket_cookie(sk), tp, e, now);
	return 0;
}

/*
 * Has sockops call for a flow that began without it, from 6.12 on. Before, the option is
 * unknown and none is tracked: it would never be sampled, and its end not be heard of.
 */
static __always_inline struct fp_estats *adopt(const struct fp_instruments *config,
					       struct tcp_sock *tp, u64 cookie)
{
	u32 callbacks = 0, size = sizeof(callbacks);
	struct fp_estats *e;

	if (!is_wanted(config, tp, cookie) ||
	    bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &callbacks, size))
		return NULL;
	e = track(config, tp, tp, FP_ESTATS_ADOPTED);
	if (!e)
		return NULL;
	callbacks |= CALLBACKS;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &callbacks, size))
		release(e, tp);
	e->sampled_ns = tp->tcp_clock_cache;
	return e;
}

static __always_inline int is_connected(struct sock_common *skc)
{
	u32 state = skc->skc_state;

	return state != BPF_TCP_LISTEN && state != BPF_TCP_SYN_SENT && state != BPF_TCP_CLOSE;
}

SEC("iter/tcp")
int walk_samples(struct bpf_iter__tcp *ctx)
{
	u32 zero = 0;
	struct sock_common *skc = ctx->sk_common;
	struct fp_sample *r = bpf_map_lookup_elem(&scratch, &zero);
	struct fp_instruments *config = instruments();
	const struct fp_rude_flow *rude;
	const struct fp_flow *flow;
	struct fp_estats *e;
	struct tcp_sock *tp;

	if (!skc || !r || !config || !is_connected(skc))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || !is_in_cgroup(tp, config->cgroup_id))
		return 0;
	/*
	 * Then what is in no cache, all of it at once: the lookups begin together, for each goes through three
	 * places. The reader dates the sample: reading the clock here waits for what was loaded.
	 */
	r->tcp.now_ns = 0;
	e = bpf_sk_storage_get(&fp_estats, tp, NULL, 0);
	flow = bpf_sk_storage_get(&fp_flows, tp, NULL, 0);
	rude = rude_of_flow(flow, tp);
	bring_near(tp);
	if (e)
		bring_kept_near(e);
	r->kind = FP_SAMPLE_WALK;
	r->tcp.cookie = bpf_get_socket_cookie(tp);
	if (!e || !(e->flags & FP_ESTATS_TRACKED))
		e = adopt(config, tp, r->tcp.cookie);
	fill_sample(r, tp, e, flow, rude);
	bpf_seq_write(ctx->meta->seq, r, sizeof(*r));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
