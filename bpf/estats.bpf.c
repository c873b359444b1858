/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The instruments: each flow that is sampled says what it is at its own round trips or, if it
 * only receives, when its program reads, at most once an interval, and at what happens to it, within the host's budget (budget.h);
 * the rest is read by a walk. One struct
 * fp_sample goes into a ring buffer of their own, which nobody but the daemon reads. An
 * idle flow costs nothing.
 *
 * It changes nothing of a flow but its sockops callbacks, to which it adds its own: those
 * of other programs (tune.bpf.c) stay. It takes none away, for whose they are nobody knows.
 *
 * Start reading at sample_flow().
 */
#include "include/kernel.h"
#include "include/budget.h"
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

#define WAKE_ONCE_IN_BYTES (4 * 1024 * 1024)

/* A flow that only receives is sampled after so many segments with data: a request of a few is none. */
#define RECEIVED_SEGS 4

/* Who is, was or wants to be rude has an fp_flow of its own (turn_on(), make_rude()): most sockets have neither. */
static __always_inline struct fp_rude_flow *rude_of_flow(int has_flow, void *sk)
{
	return has_flow ? bpf_sk_storage_get(&fp_rudes, sk, NULL, 0) : NULL;
}

FP_ARRAY(fp_moved_since, 1, u64); /* of walk_moved, microseconds of CLOCK_MONOTONIC */

/* Too large for the stack; one walk a processor at a time writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_sample);
} scratch SEC(".maps");

/* `young`: of a flow that begins, or that ends without `e`. */
static __always_inline void emit(enum fp_sample_kind kind, void *sk, u64 cookie,
				 struct tcp_sock *tp, struct fp_estats *e,
				 const struct young *young, struct fp_sampling *s, u32 ca_state,
				 u64 now_ns)
{
	struct fp_sample *r = bpf_ringbuf_reserve(&fp_samples, sizeof(*r), 0);
	struct kept kept = { .e = e, .young = young };
	struct met met;

	if (e) {
		e->sampled_ns = tp->tcp_clock_cache;
		note_active(s, e, tp->tcp_clock_cache);
	}
	if (!r) {
		count(FP_COUNT_SAMPLES_LOST);
		return;
	}
	r->kind = kind;
	r->tcp.cookie = cookie;
	r->tcp.now_ns = now_ns;
	met = met_of(sk, cookie);
	kept.rude = rude_of_flow(met.is_kept, sk);
	fill_sample(r, tp, &met, &kept, ca_state);
	if (e)
		e->counted.rtt_us = 0;
	bpf_ringbuf_submit(r, wake_flag(&fp_samples, WAKE_ONCE_IN_BYTES, sizeof(*r)));
	count(FP_COUNT_SAMPLES);
	note_time(s, now_ns);
}

/* 1 and what is kept of a flow that is sampled from now on; 0: a bound is reached. */
static __always_inline int enter(const struct fp_instruments *config, struct tcp_sock *tp,
				 u64 cookie, u32 flags, struct young *young)
{
	u32 admitted = admit(config, tp);

	*young = (struct young){
		.cookie = cookie,
		.begin_ns = bpf_ktime_get_ns(),
		.generation = config->generation,
		.flags = admitted ? admitted | flags : 0,
	};
	return !!admitted;
}

/*
 * A flow that is sampled from now on has storage, or is young: then NULL is returned, and `young` is tracked. A socket that
 * has storage was used for a connection before.
 */
static __always_inline struct fp_estats *track(const struct fp_instruments *config, void *sk,
					       struct tcp_sock *tp, u64 cookie, u32 flags,
					       struct young *young)
{
	if (!enter(config, tp, cookie, flags, young)) {
		count(FP_COUNT_UNSAMPLED);
		return NULL;
	}
	if (!bpf_sk_storage_get(&fp_estats, sk, NULL, 0) && become_young(young))
		return NULL;
	return store(sk, tp, young);
}

static __always_inline struct fp_estats *on_established(struct bpf_sock_ops *ctx, void *sk,
							struct tcp_sock *tp, u64 cookie,
							const struct fp_instruments *config,
							struct young *young)
{
	u32 side = ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB ? FP_ESTATS_PASSIVE : 0;
	struct fp_estats *e = NULL;

	if (is_wanted(config, sk, cookie))
		e = track(config, sk, tp, cookie, side, young);
	if (e || young->flags & FP_ESTATS_TRACKED)
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | CALLBACKS);
	return e;
}

static __always_inline int is_end(struct bpf_sock_ops *ctx)
{
	return ctx->op == BPF_SOCK_OPS_STATE_CB && ctx->args[1] == BPF_TCP_CLOSE;
}

/* What is kept of a flow to which something happens. Of one that ends young: NULL, and `young` is tracked. */
static __always_inline struct fp_estats *
kept_of(struct bpf_sock_ops *ctx, void *sk, struct tcp_sock *tp, u64 cookie, struct young *young)
{
	struct fp_estats *e = bpf_sk_storage_get(&fp_estats, sk, NULL, 0);

	if (e && e->flags & FP_ESTATS_TRACKED)
		return e;
	if (!grow_up(cookie, young))
		return e;
	return is_end(ctx) ? NULL : store(sk, tp, young);
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
	struct young young;

	e->generation = config->generation;
	is_tracked = is_wanted(config, sk, cookie);
	if (was_tracked && !is_tracked)
		release(&e->flags, tp);
	if (was_tracked || !is_tracked || !enter(config, tp, cookie, FP_ESTATS_ADOPTED, &young))
		return FP_SAMPLE_NOTHING;
	begin(e, &young);
	return FP_SAMPLE_BEGIN;
}

static __always_inline enum fp_sample_kind on_round_trip(struct bpf_sock_ops *ctx,
							 struct tcp_sock *tp, struct fp_estats *e,
							 struct fp_sampling *s,
							 const struct fp_instruments *config)
{
	note_rtt(&e->counted, tp, ctx->args[0]);
	note_limit(&e->counted, tp, &e->limited_by);
	if (!may_sample_interval(s, e, tp->tcp_clock_cache, config))
		return FP_SAMPLE_NOTHING;
	return FP_SAMPLE_INTERVAL;
}

/* RFC 4898 counts timeouts with a backoff of one apart from those that follow them. */
static __always_inline enum fp_sample_kind on_timeout(struct bpf_sock_ops *ctx, struct tcp_sock *tp,
						      struct fp_estats *e, struct fp_sampling *s)
{
	if (ctx->args[0])
		e->counted.subsequent_timeouts++;
	else
		e->counted.timeouts++;
	return may_sample_event(s, tp->tcp_clock_cache) ? FP_SAMPLE_TIMEOUT : FP_SAMPLE_NOTHING;
}

/* A burst of them is one event, with its number in the counters. */
static __always_inline enum fp_sample_kind on_retransmission(struct tcp_sock *tp,
							     struct fp_estats *e,
							     struct fp_sampling *s,
							     const struct fp_instruments *config)
{
	u64 now_ns = tp->tcp_clock_cache;

	if (!is_over(e->retrans_ns, now_ns, interval_in_force(s, config)))
		return FP_SAMPLE_NOTHING;
	e->retrans_ns = now_ns;
	return may_sample_event(s, now_ns) ? FP_SAMPLE_RETRANSMISSION : FP_SAMPLE_NOTHING;
}

static __always_inline enum fp_sample_kind happened(struct bpf_sock_ops *ctx, struct tcp_sock *tp,
						    struct fp_estats *e, struct fp_sampling *s,
						    const struct fp_instruments *config)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_RTT_CB:
		return on_round_trip(ctx, tp, e, s, config);
	case BPF_SOCK_OPS_RTO_CB:
		return on_timeout(ctx, tp, e, s);
	case BPF_SOCK_OPS_RETRANS_CB:
		return on_retransmission(tp, e, s, config);
	case BPF_SOCK_OPS_STATE_CB: /* is_end() */
		note_event(s, tp->tcp_clock_cache);
		return FP_SAMPLE_END;
	}
	return FP_SAMPLE_NOTHING;
}

/* FP_SAMPLE_BEGIN: a new configuration names it. */
static __always_inline enum fp_sample_kind renew(const struct fp_instruments *config, void *sk,
						 struct tcp_sock *tp, u64 cookie,
						 struct fp_estats *e, struct fp_sampling *s)
{
	enum fp_sample_kind kind = FP_SAMPLE_NOTHING;

	if (e->generation != config->generation)
		kind = reconfigure(config, sk, tp, cookie, e);
	if (kind != FP_SAMPLE_NOTHING)
		note_event(s, tp->tcp_clock_cache);
	return kind;
}

static __always_inline enum fp_sample_kind on_event(struct bpf_sock_ops *ctx, void *sk,
						    struct tcp_sock *tp, u64 cookie,
						    struct fp_estats *e, struct fp_sampling *s,
						    const struct fp_instruments *config)
{
	enum fp_sample_kind kind = FP_SAMPLE_NOTHING;

	/* One that is at its end begins no more: nothing would release it. */
	if (!is_end(ctx))
		kind = renew(config, sk, tp, cookie, e, s);
	if (kind != FP_SAMPLE_NOTHING || !(e->flags & FP_ESTATS_TRACKED))
		return kind;
	return happened(ctx, tp, e, s, config);
}

static __always_inline int is_establishment(u32 op)
{
	return op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ||
	       op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
}

/* The others come for every connection, and for request sockets. */
static __always_inline int is_ours(struct bpf_sock_ops *ctx)
{
	u32 op = ctx->op;

	return is_establishment(op) || op == BPF_SOCK_OPS_RTT_CB || op == BPF_SOCK_OPS_RTO_CB ||
	       op == BPF_SOCK_OPS_RETRANS_CB || is_end(ctx);
}

/*
 * emit() for the sockops program, as a global function: the verifier walks through it once, not once for each way to
 * it. `kind` is an enum fp_sample_kind; the argument says no more to the verifier than that it is a number.
 */
__noinline int emit_of_ctx(struct bpf_sock_ops *ctx, struct fp_estats *e, const struct young *young,
			   u32 kind, u64 now_ns)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct fp_sampling *s = sampling();

	if (!tp || !s)
		return 0;
	emit(kind, sk, bpf_get_socket_cookie(ctx), tp, e, young, s, ca_state_of(tp), now_ns);
	return 0;
}

/* Of a flow that begins, or that ends young. Reading the clock takes 30 ns, and a flow's begin was read just now. */
static __always_inline void emit_young(struct bpf_sock_ops *ctx, struct tcp_sock *tp,
				       struct fp_sampling *s, struct fp_estats *e,
				       struct young *young)
{
	if (!e && !(young->flags & FP_ESTATS_TRACKED))
		return;
	note_event(s, tp->tcp_clock_cache);
	if (!is_end(ctx)) {
		emit_of_ctx(ctx, e, young, FP_SAMPLE_BEGIN, young->begin_ns);
		return;
	}
	emit_of_ctx(ctx, e, young, FP_SAMPLE_END, bpf_ktime_get_ns());
	release(&young->flags, tp);
}

SEC("sockops")
int sample_flow(struct bpf_sock_ops *ctx)
{
	enum fp_sample_kind kind;
	struct fp_instruments *config = instruments();
	struct fp_sampling *s = sampling();
	struct young young = {};
	struct fp_estats *e;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	u64 cookie;

	if (!is_ours(ctx) || !config || !s)
		return 1;
	if (config->sampled == FP_SAMPLED_NONE && !is_any_tracked())
		return 1;
	sk = ctx->sk;
	tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	if (!tp)
		return 1;
	cookie = bpf_get_socket_cookie(ctx);
	if (is_establishment(ctx->op))
		e = on_established(ctx, sk, tp, cookie, config, &young);
	else
		e = kept_of(ctx, sk, tp, cookie, &young);
	if (!e || is_establishment(ctx->op)) {
		emit_young(ctx, tp, s, e, &young);
		return 1;
	}
	kind = on_event(ctx, sk, tp, cookie, e, s, config);
	if (kind == FP_SAMPLE_NOTHING)
		note_extremes(&e->extremes, tp, ca_state_of(tp));
	else
		emit_of_ctx(ctx, e, NULL, kind, bpf_ktime_get_ns());
	if (kind == FP_SAMPLE_END)
		release(&e->flags, tp);
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

/* Outside sockops. */
static __always_inline struct fp_estats *kept_of_live(struct tcp_sock *tp)
{
	struct fp_estats *e = bpf_sk_storage_get(&fp_estats, tp, NULL, 0);
	struct young young;

	if (e && e->flags & FP_ESTATS_TRACKED)
		return e;
	return grow_up(bpf_get_socket_cookie(tp), &young) ? store(tp, tp, &young) : e;
}

/* In tcp_set_ca_state(), before the state is set and after ssthresh was. */
SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(state_set, struct sock *sk, u8 now)
{
	struct fp_instruments *config = instruments();
	enum fp_sample_kind kind = FP_SAMPLE_STATE;
	struct fp_sampling *s = sampling();
	struct fp_estats *e;
	struct tcp_sock *tp;
	u32 before;

	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !config || !s)
		return 0;
	before = ca_state_of(tp);
	/* As each connection begins. */
	if (before == TCP_CA_OPEN && now == TCP_CA_OPEN)
		return 0;
	e = kept_of_live(tp);
	if (!e || !(e->flags & FP_ESTATS_TRACKED))
		return 0;
	if (is_congestion_signal(tp, before, now)) {
		note_signal(&e->counted, tp);
		note_reduction(&e->extremes, tp, before);
		kind = FP_SAMPLE_CONGESTION;
	} else if (before == now ||
		   !is_over(e->state_ns, tp->tcp_clock_cache, interval_in_force(s, config))) {
		return 0;
	} else {
		e->state_ns = tp->tcp_clock_cache;
	}
	if (may_sample_event(s, tp->tcp_clock_cache))
		emit(kind, sk, bpf_get_socket_cookie(sk), tp, e, NULL, s, now, bpf_ktime_get_ns());
	return 0;
}

/* Which socket a processor has seen read last, and in which tick. */
struct reading {
	u64 sk;
	u64 ticks;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct reading);
} reading SEC(".maps");

/* A program reads many buffers in a tick: all that is looked at was put out of the caches by what it copied. */
static __always_inline int was_seen_reading(const struct sock *sk, u32 ticks)
{
	u32 zero = 0;
	struct reading *last = bpf_map_lookup_elem(&reading, &zero);

	if (!last || (last->sk == (u64)sk && last->ticks == ticks))
		return 1;
	last->sk = (u64)sk;
	last->ticks = ticks;
	return 0;
}

static __always_inline int only_receives(const struct fp_instruments *config,
					 const struct tcp_sock *tp, u32 ticks)
{
	return ticks - tp->lsndtime >= config->interval_ticks && tp->data_segs_in >= RECEIVED_SEGS;
}

static __always_inline enum fp_sample_kind on_received(const struct fp_instruments *config,
						       struct tcp_sock *tp, u64 cookie,
						       struct fp_estats *e, struct fp_sampling *s)
{
	enum fp_sample_kind kind = renew(config, tp, tp, cookie, e, s);

	if (kind != FP_SAMPLE_NOTHING || !(e->flags & FP_ESTATS_TRACKED))
		return kind;
	if (!may_sample_interval(s, e, tp->tcp_clock_cache, config))
		return FP_SAMPLE_NOTHING;
	return FP_SAMPLE_INTERVAL;
}

/*
 * A flow that only receives has no round trips of its own: it is sampled when its program reads. This comes with each
 * buffer of data that any program of the host reads, tcp_probe with each segment that comes, acknowledgements included.
 */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(sample_received, struct sock *sk)
{
	struct fp_instruments *config = instruments();
	struct fp_sampling *s = sampling();
	enum fp_sample_kind kind;
	struct fp_estats *e;
	struct tcp_sock *tp;
	u32 ticks = TICKS();
	u64 cookie;

	if (was_seen_reading(sk, ticks))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !config || !s || !only_receives(config, tp, ticks))
		return 0;
	/* What came before the end can be read behind it. */
	if (tp->inet_conn.icsk_inet.sk.__sk_common.skc_state == BPF_TCP_CLOSE)
		return 0;
	e = kept_of_live(tp);
	if (!e || !is_over(e->due_ns, tp->tcp_clock_cache, config->interval_ns) ||
	    tp->data_segs_in - (u32)e->wide.data_segs_in < RECEIVED_SEGS)
		return 0;
	cookie = bpf_get_socket_cookie(sk);
	kind = on_received(config, tp, cookie, e, s);
	if (kind != FP_SAMPLE_NOTHING)
		emit(kind, sk, cookie, tp, e, NULL, s, ca_state_of(tp), bpf_ktime_get_ns());
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
	struct young young;

	if (!is_wanted(config, tp, cookie) ||
	    bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &callbacks, size))
		return NULL;
	/* Not counted as unsampled: the walks would count it again and again. */
	if (!enter(config, tp, cookie, FP_ESTATS_ADOPTED, &young))
		return NULL;
	e = store(tp, tp, &young);
	if (!e)
		return NULL;
	callbacks |= CALLBACKS;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &callbacks, size))
		release(&e->flags, tp);
	e->sampled_ns = tp->tcp_clock_cache;
	return e;
}

static __always_inline int is_connected(struct sock_common *skc)
{
	u32 state = skc->skc_state;

	return state != BPF_TCP_LISTEN && state != BPF_TCP_SYN_SENT && state != BPF_TCP_CLOSE;
}

static __always_inline void walk_by(struct seq_file *seq, struct tcp_sock *tp)
{
	u32 zero = 0;
	struct fp_sample *r = bpf_map_lookup_elem(&scratch, &zero);
	struct fp_instruments *config = instruments();
	const struct fp_flow *flow;
	struct kept kept = {};
	struct fp_estats *e;
	struct met met;

	if (!r || !config || !is_in_cgroup(tp, config->cgroup_id))
		return;
	/*
	 * Then what is in no cache, all of it at once: the lookups begin together, for each goes through three
	 * places. The reader dates the sample: reading the clock here waits for what was loaded.
	 */
	r->tcp.now_ns = 0;
	e = bpf_sk_storage_get(&fp_estats, tp, NULL, 0);
	flow = bpf_sk_storage_get(&fp_flows, tp, NULL, 0);
	kept.rude = rude_of_flow(!!flow, tp);
	bring_near(tp);
	if (e)
		bring_kept_near(e);
	r->kind = FP_SAMPLE_WALK;
	r->tcp.cookie = bpf_get_socket_cookie(tp);
	if (!e || !(e->flags & FP_ESTATS_TRACKED))
		e = kept_of_live(tp);
	if (!e || !(e->flags & FP_ESTATS_TRACKED))
		e = adopt(config, tp, r->tcp.cookie);
	met = met_by(flow, r->tcp.cookie);
	kept.e = e;
	fill_sample(r, tp, &met, &kept, ca_state_of(tp));
	bpf_seq_write(seq, r, sizeof(*r));
}

SEC("iter/tcp")
int walk_samples(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;

	if (!skc || !is_connected(skc))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (tp)
		walk_by(ctx->meta->seq, tp);
	return 0;
}

/*
 * TCP's own clock of the socket: set by every segment that comes or goes, every timer, and every reading of data.
 * While data waits to be sent or acknowledged, what it waits for is told without that.
 */
static __always_inline int has_moved(const struct tcp_sock *tp, u64 since_us)
{
	return tp->tcp_mstamp >= since_us || tp->write_seq != tp->snd_una;
}

/* Passes by sockets that did nothing since fp_moved_since, before anything else of them is looked at. */
SEC("iter/tcp")
int walk_moved(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	u32 zero = 0;
	u64 *since_us = bpf_map_lookup_elem(&fp_moved_since, &zero);
	struct tcp_sock *tp;

	if (!skc || !since_us || !is_connected(skc))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (tp && has_moved(tp, *since_us))
		walk_by(ctx->meta->seq, tp);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
