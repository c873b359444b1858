/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The only contract between the kernel half and user space.
 *
 * crates/abi/src/abi.rs is generated from this file (cargo xtask abi) and a
 * check fails when the two differ. Every field has a fixed width, every unit
 * stands in its name. Whoever changes a layout raises FP_ABI_VERSION: a daemon
 * that finds pins of another version replaces them.
 */
#ifndef FATPATH_ABI_H
#define FATPATH_ABI_H

#ifdef __bpf__
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
#else
#include <linux/types.h>
#endif

#include "release.h"
#include "setting_table.h"

#define FP_ABI_VERSION 21

/* Limits of a policy. */
#define FP_MAX_RULES 1024    /* rules in one policy */
#define FP_MAX_RULE_IDS 2048 /* two policies' worth: the old one's stay while flows leave them */
#define FP_MAX_PROFILES 512 /* of learned paths, which are rules with ids from FP_MAX_RULE_IDS on */
#define FP_ALL_RULE_IDS 2560 /* FP_MAX_RULE_IDS + FP_MAX_PROFILES */
#define FP_MAX_PATHS 65536
#define FP_SET_WORDS 16 /* FP_MAX_RULES / 64 */
#define FP_MAX_PORT_CUTS 2048
#define FP_NAME_LEN 64 /* a rule's name with its NUL */
#define FP_LAW_LEN 16  /* TCP_CA_NAME_MAX */
#define FP_MAX_CGROUP_DEPTH 32
#define FP_LAW_PARAMS 6 /* CC_PARAMS of bpf/cc */
#define FP_NO_RULE 0xffffffffu

/* The settings, by the rows of their table. A rule gives one when its bit (1 << it) is in fp_rule.given. */
#define FP_SETTING_NUMBER(NAME, ...) FP_##NAME,
enum fp_setting {
	FP_SETTING_TABLE(FP_SETTING_NUMBER) FP_SETTINGS,
	FP_SOCKET_SETTINGS = FP_MAX_SSTHRESH, /* those before it are set on the socket */
	FP_RULE_VALUES = FP_REORDERING,	      /* those before it have a place in fp_rule.value */
	FP_ERRORS = (FP_SOCKET_SETTINGS + 1) / 2 * 2, /* even, so that nothing is padded */
	FP_FIRST_OPTION =
		FP_RTO_MIN, /* it and those up to FP_SOCKET_SETTINGS: programs set them too */
	FP_OPTIONS = FP_SOCKET_SETTINGS - FP_FIRST_OPTION,
};

/* fp_rule.value[FP_AFTER_IDLE]: what becomes of the window in a pause longer than the RTO. */
enum fp_after_idle {
	FP_IDLE_HOSTS_OWN, /* as net.ipv4.tcp_slow_start_after_idle says */
	FP_IDLE_RESTART,
	FP_IDLE_KEEP,
	FP_IDLE_PACE,
};

/* fp_rule.value[FP_RUDENESS]: whether a flow may go on without congestion control. */
enum fp_rude {
	FP_RUDE_NEVER,
	FP_RUDE_ALLOWED, /* its program may ask for it: TCP_RUDE */
	FP_RUDE_ALWAYS,	 /* whatever its program says */
};

/* fp_rule.value[FP_RUDE_RATE]: neither paced at a rate of the rule's nor at an estimate. */
#define FP_RUDE_UNLIMITED 0x7fffffffffffffffull

/* What one rule gives a flow. */
struct fp_rule {
	__u64 value[FP_RULE_VALUES];  /* by enum fp_setting, in the unit of its row; 0: not given */
	__u64 initial_ssthresh_bytes; /* 0: none, or value[FP_INITIAL_SSTHRESH] */
	__u32 given;
	__u32 rude_fair_law; /* the law of the fair window, as CC_LAWS counts; see rude.bpf.c */
	__u32 law_params[FP_LAW_PARAMS]; /* the law's own units: see bpf/cc/<law>.h */
	__u8 law[FP_LAW_LEN];
	__u32 has_phases;  /* 1: fp_phase_rules has what the rule gives in a collective phase */
	__u32 shares_rate; /* 1: those of its flows that send share value[FP_PACING_RATE] */
};

/* What the processes do that own flows: enum fp_phase. */
enum fp_phase {
	FP_PHASE_OTHER, /* what the rule itself is for */
	FP_PHASE_COLLECTIVE,
};
#define FP_PHASES 2

/* Whose a socket is: of the process that made it, or its listening socket (cloned socket storage). */
struct fp_owner {
	__u64 start_ns; /* of the process: its number is given to others once it has ended */
	__u32 process;	/* its number in the first PID namespace */
	__u32 pad;
};

/* A process that called a function of a phase; key: its number. Times are CLOCK_MONOTONIC. */
struct fp_process {
	__u64 start_ns;	     /* as fp_owner has it */
	__u64 since_ns;	     /* its first call */
	__u64 entered_ns;    /* the latest collective phase began */
	__u64 collective_ns; /* of all that have ended */
	__u64 phases;	     /* collective ones that began */
	__u64 calls;
	__u32 threads; /* of it in a collective call now */
	__u32 pad;
};

/* How long phases are heeded. User space writes it every few seconds. */
struct fp_phase_gate {
	__u64 until_ns; /* CLOCK_MONOTONIC; afterwards nobody follows the processes any more */
	__u64 limit_ns; /* a phase that is longer has not ended properly, and is none */
};

struct fp_name {
	__u8 text[FP_NAME_LEN]; /* NUL-terminated; empty = the id is free */
};

/* One set of rules, bit i = the rule at position i of the policy file. */
struct fp_rule_set {
	__u64 words[FP_SET_WORDS];
};

/*
 * Ports from `first` up to the next cut's belong to set `set`. The first cut is at
 * 0; cuts that are not used lie at FP_NO_PORT, past the last port.
 */
#define FP_NO_PORT 0x10000
struct fp_port_cut {
	__u32 first;
	__u32 set;
};

/* fp_slot.looks_at: which dimensions the policy distinguishes. Without rules it looks at none. */
#define FP_BY_SOURCE 1u
#define FP_BY_DESTINATION_PORT 2u
#define FP_BY_SOURCE_PORT 4u
#define FP_BY_CGROUP 8u
#define FP_BY_DESTINATION 16u /* whenever there is a rule */

/* One compiled policy. Two slots exist: one live, one being written. */
struct fp_slot {
	__u32 looks_at;
	__u32 any_cgroup_set;	     /* the set of a flow whose cgroup no rule names */
	__u32 rule_id[FP_MAX_RULES]; /* position in the file -> stable id */
	struct fp_port_cut destination_ports[FP_MAX_PORT_CUTS];
	struct fp_port_cut source_ports[FP_MAX_PORT_CUTS];
};

/* In a trie: no rule, whatever the other dimensions say. */
#define FP_NO_SET 0xffffffffu

/* Key of the address tries: IPv4 as ::ffff:a.b.c.d. */
struct fp_address_key {
	__u32 prefix_len;
	__u8 address[16];
};

/* Key of fp_paths: from an address of this host, with all of its bits, to a prefix of its peers. */
struct fp_path_key {
	__u32 prefix_len;
	__u8 local[16];
	__u8 remote[16];
};

/* What flows of a learned path get. */
struct fp_path {
	__u32 rule_id;
	__u32 base_rtt_us;    /* without a queue */
	__u64 bdp_bytes;      /* it holds so many then; 0: unknown */
	__u64 known_until_ns; /* CLOCK_MONOTONIC */
	__u64 started_ns;     /* when the last one did */
};

/* fp_control.flags */
#define FP_BEFORE_SYN_TOO 1u /* some rule gives what the SYN carries, or overrides what it would */

/* The one word that makes a policy live. */
struct fp_control {
	__u32 live_slot;
	__u32 generation;		/* counts policies since the load; 0 = none is live */
	__u32 send_buffer_max_bytes;	/* net.core.wmem_max and rmem_max: what getsockopt */
	__u32 receive_buffer_max_bytes; /* would show of a buffer that was kept from the kernel */
	__u32 flags;
	__u32 tcp_mem_share_milli; /* of tcp_mem's pressure: no buffers above the kernel's own beyond it */
};

/* What a program asked for by setsockopt while fatpath kept it from the kernel; 0 = nothing. */
struct fp_asked {
	__u32 send_buffer_bytes;
	__u32 receive_buffer_bytes;
};

/* fp_flow.flags */
#define FP_FLOW_PASSIVE 1u /* the peer opened the connection */
#define FP_FLOW_ADOPTED 2u /* it was established before fatpath saw it */
#define FP_FLOW_ESTABLISHED 8u
#define FP_FLOW_RUDE 16u	/* it is to be rude, when it last met the policy */
#define FP_FLOW_WITHHELD 32u	/* a buffer of its rule was not given for want of TCP memory */
#define FP_FLOW_PACED 64u	/* its rule has it paced: no law of ours ends that */
#define FP_FLOW_PACING_SET 128u /* and before that it was not paced */
#define FP_FLOW_AT_RATE 256u	/* of a learned path, it may start at the initial_rate */

/* An option that fatpath set, as the socket has it: timers in ticks, rates in bytes a second. */
struct fp_option {
	__u64 before; /* the program's value, or the kernel's where the program chose none */
	__u64 set;    /* as fatpath left it; 0 = it did not set it */
};

/* What the kernel half has to know of the host. */
struct fp_host {
	__u32 tick_us; /* 1/HZ */
	__u32 pad;
};

/* The state that fatpath keeps of a tuned flow (socket storage). */
struct fp_flow {
	__u64 seen_ns; /* CLOCK_MONOTONIC */
	__u32 rule_id;
	__u32 flags;
	__u32 initial_cwnd_pkts; /* read back when it was set */
	__u32 send_buffer_set;	 /* sk_sndbuf as fatpath left it; 0 = it never set it */
	__u32 receive_buffer_set;
	__u32 is_counted;  /* it stands in its rule's fp_share */
	__u32 phase;	   /* enum fp_phase: whose window and parameters its law has */
	__u32 phase_given; /* and whose settings the socket has */
	__u32 sent_in
		[FP_PHASES]; /* the window of time in which it counted last: bpf/cc/senders.h */
	__u32 shared_by; /* flows that send, itself too, when its share of the rule's rate was given; 0: not yet */
	__u32 base_rtt_us; /* of its path without a queue, as it was learned; 0: unknown */
	__u64 bdp_bytes;   /* which it holds then; 0: unknown */
	__u8 law_before
		[FP_LAW_LEN];	  /* the program's, which law_set replaced; empty = it chose none */
	__u8 law_set[FP_LAW_LEN]; /* as fatpath left it; empty = it set none */
	struct fp_option options[FP_OPTIONS];
	struct fp_rule wanted;	/* as applied: after division among flows */
	__s32 error[FP_ERRORS]; /* 0, -errno of bpf_setsockopt, or FP_KEPT_PROGRAMS_OWN */
};

#define FP_NEW_FLOWS 2048
/* A connection that could not be made is heard of no more: its place is free when no SYN waits so long. */
#define FP_SYN_IS_LOST_NS 300000000000ull

/* A place for a flow that has carried no data: bpf/include/new_flow.h. */
struct fp_new_flow {
	__u64 owner; /* its socket's cookie, the highest bit set once it has ended; 0: nobody's */
	struct fp_flow flow;
};

/* The system-wide gate of Rude TCP, and how its segments are marked. */
struct fp_rude_gate {
	__u32 is_open;
	__u32 mark_bits;  /* of the two bytes after the acknowledgement number; 0: none of them */
	__u32 mark_dscp;  /* 1 to 63; 0: the field stays */
	__u32 marks_here; /* 1: the daemon's network namespace marks, whatever interfaces it has */
};

/* fp_rude_flow.mode */
enum fp_rude_mode {
	FP_POLITE,
	FP_RUDE,
	FP_GOING_POLITE, /* RUDE_OFF_NICELY: its artificial window still exceeds the fair one */
};

/* fp_rude_flow.flags */
#define FP_RUDE_UNMARKED 1u /* found without marks: this connection stays polite */
#define FP_RUDE_COUNTED 2u  /* it stands in fp_rude_shares, at counted_rule */

/* What is kept of a flow that was rude (socket storage). Its segments are marked unless it is polite. */
struct fp_rude_flow {
	__u32 mode;	   /* enum fp_rude_mode */
	__u32 marked_pkts; /* counted by mark.bpf.c, which is how the law knows that marks are set */
	__u32 user;	   /* who asked for it */
	__u32 flags;
	__u32 fair_cwnd_pkts; /* F, for people */
	__u32 counted_rule;
};

/* What fp_rude_gate.mark_bits may name: TCP's three reserved bits, and AE (RFC 9768), reserved once. */
#define FP_MARK_BITS 0x0f00u

/* Value of fp_marked_netns, whose key is the namespace's inode. */
struct fp_marked {
	__u64 cookie; /* SO_NETNS_COOKIE: of a namespace that is gone others get the inode */
	__u32 interfaces;
	__u32 pad;
};

/* Key of fp_rude_users: who may be rude under a rule. */
struct fp_rude_user {
	__u32 rule_id;
	__u32 user;
};

/*
 * Flows that share a rule's buffers: one that begins is added and one that ends taken off, and now and then all are
 * counted anew (list_divided() in flows.bpf.c).
 */
struct fp_share {
	__u64 flows;
};

/* A flow of a rule that divides, as it was counted. */
struct fp_divided {
	__u32 rule_id;
	__u32 netns; /* inode */
	__u32 is_counted;
	__u32 pad;
};

enum fp_event_kind {
	FP_EVENT_FLOW_END = 1,
	FP_EVENT_SHARE_CHANGED = 2, /* other flows of the rule have to be given their new share */
};

struct fp_share_event {
	__u32 kind; /* FP_EVENT_SHARE_CHANGED */
	__u32 rule_id;
};

/* fp_flow.error: values other than 0 and -errno. */
#define FP_KEPT_PROGRAMS_OWN 1 /* the program's own value stays */
#define FP_WITHHELD 2	       /* the kernel's own buffer stays, for TCP memory is short */

/* Counters, index into the map fp_counts. */
enum fp_count {
	FP_COUNT_MET,	     /* flows that matched a rule */
	FP_COUNT_PASSED,     /* flows that matched none */
	FP_COUNT_LOST,	     /* events that the full ring buffer could not take */
	FP_COUNT_NO_STORAGE, /* flows without their rule, or their law, for want of socket storage */
	FP_COUNT_BAD_PARAMS, /* flows that fell back to Reno, their parameters being out of range */
	FP_COUNT_UNMARKED,   /* rude flows that became polite: segments without marks */
	FP_COUNT_SAMPLES,    /* samples handed over */
	FP_COUNT_SAMPLES_LOST,	       /* samples that the full ring buffer could not take */
	FP_COUNT_UNSAMPLED,	       /* flows that max_flows or max_flows_per_prefix left out */
	FP_COUNT_UNSAMPLED_NO_STORAGE, /* flows left out for want of socket storage */
	FP_COUNT_WITHHELD,	       /* buffers not given for want of TCP memory */
	FP_COUNT_EVENTS_UNSAMPLED,     /* events beyond the budget of samples */
	FP_COUNTS,
};

/* How the walk over live sockets treats them, or FP_WALK_RELEASE; written to the map fp_walk before a walk. */
enum fp_walk_mode {
	FP_WALK_MEET = 0,  /* every flow meets the live policy */
	FP_WALK_SHARE = 1, /* flows of shared rules get their present share */
	FP_WALK_RUDE = 2,  /* flows become rude or polite, as they now may */
};

/* Which flows the instruments sample. */
enum fp_sampled {
	FP_SAMPLED_NONE,
	FP_SAMPLED_ALL,
	FP_SAMPLED_RULES, /* those on a rule of fp_instruments.rules */
};

#define FP_RULE_ID_WORDS 32 /* FP_MAX_RULE_IDS / 64 */

/* What the instruments are to do; user space writes it. */
struct fp_instruments {
	__u64 interval_ns;
	__u64 cgroup_id;	       /* a walk sees only sockets of it and below; 0 = all */
	__u64 rules[FP_RULE_ID_WORDS]; /* bit = stable id */
	__u32 sampled;		       /* enum fp_sampled */
	__u32 one_in;
	__u32 max_flows;
	__u32 max_flows_per_prefix; /* of the peer's /24 or /64; 0 = no bound */
	__u32 generation; /* a flow that knows another one finds out anew whether it is sampled */
	__u32 interval_ticks; /* interval_ns, at least 1 */
};

/* How the samples of all flows fare against the host's budget. Times are the kernel's tcp_clock_cache. */
struct fp_sampling {
	__u64 began_ns;	   /* of the present second */
	__u64 interval_ns; /* in force, if longer than fp_instruments.interval_ns; 0: that one is */
	__u64 timed_ns;	   /* what timed_samples took */
	__u64 timed_samples;
	__u32 interval_samples_max; /* in the present second */
	/* Counted in the present second: */
	__u32 active_flows;	/* flows of which a sample was due */
	__u32 due_samples;	/* at fp_instruments.interval_ns */
	__u32 interval_samples; /* at round trips: made, or refused at the maximum */
	__u32 event_samples;	/* all others */
	__u32 pad;
};

/* What the kernel counts in 32 bits, widened. */
struct fp_wide {
	__u64 segs_out;
	__u64 data_segs_out;
	__u64 segs_retrans;
	__u64 segs_in;
	__u64 data_segs_in;
	__u64 delivered_pkts;
	__u64 delivered_ce_pkts;
	__u64 lost_pkts;
};

/* What the kernel does not count: counted since fatpath first saw the flow. */
struct fp_counted {
	__u64 sum_rtt_us; /* of one measurement a round trip; so the next two */
	__u32 count_rtt;
	__u32 max_rtt_us;
	__u32 rtt_us;	      /* the latest since the last sample; 0 = none */
	__u32 lim_trans_rwin; /* seen once a round trip */
	__u32 lim_trans_cwnd;
	__u32 lim_trans_snd;
	__u64 begin_ns; /* CLOCK_MONOTONIC */
	__u64 pre_cong_sum_cwnd_pkts;
	__u64 post_cong_sum_ssthresh_pkts;
	__u64 pre_cong_sum_rtt_us;
	__u32 cong_signals;
	__u32 timeouts;		   /* with a backoff of one */
	__u32 subsequent_timeouts; /* with more */
	__u32 slow_start_acks;	   /* by laws of bpf/cc only: FP_ESTATS_COUNTS_ACKS */
	__u32 cong_avoid_acks;
	__u32 pad;
};

/* Extremes that the kernel does not keep, since fatpath first saw the flow. 0 = nothing of it was seen. */
struct fp_extremes {
	__u64 max_pipe_bytes;
	__u32 max_retx_queue_pkts;
	__u32 max_reasm_queue_bytes;
	__u32 max_app_wqueue_bytes;
	__u32 max_app_rqueue_bytes;
	__u32 max_rwin_sent_bytes;
	__u32 max_rto_ticks;
	__u32 min_rto_ticks;
	__u32 max_mss_bytes;
	__u32 min_mss_bytes;
	__u32 max_ss_cwnd_pkts;
	__u32 max_ca_cwnd_pkts;
	__u32 max_ssthresh_pkts;
	__u32 min_ssthresh_pkts;
	__u32 ssthresh_pkts; /* no extreme: when last looked */
};

/* fp_estats.flags and fp_tcp.flags */
#define FP_ESTATS_PASSIVE 1u /* the peer opened the connection */
#define FP_ESTATS_ADOPTED 2u /* it was established before fatpath saw it */
#define FP_ESTATS_TRACKED 4u /* it is sampled; else it was only walked by, and nothing is counted */
#define FP_ESTATS_IN_PREFIX 8u	  /* it stands in its prefix's number of flows */
#define FP_ESTATS_COUNTS_ACKS 16u /* a law of bpf/cc has counted */
/* fp_tcp.flags only */
#define FP_SAMPLE_ECN 0x100u
#define FP_SAMPLE_SACK 0x200u
#define FP_SAMPLE_TIMESTAMPS 0x400u
#define FP_SAMPLE_APP_LIMITED 0x800u
#define FP_SAMPLE_CWND_LIMITED 0x1000u
#define FP_SAMPLE_RUDE 0x2000u
#define FP_SAMPLE_NO_SPACE 0x4000u	  /* the program waits for memory of the send buffer */
#define FP_SAMPLE_NOW_APP_LIMITED 0x8000u /* the program has given less than could be sent */
#define FP_SAMPLE_WITHHELD 0x10000u	  /* FP_FLOW_WITHHELD */

/*
 * The state that the instruments keep of a flow (socket storage). What every round trip
 * needs but the extremes comes first: it fits into one line of the cache.
 */
struct fp_estats {
	__u64 sampled_ns; /* the kernel's tcp_clock_cache, as due_ns and the last two */
	__u32 generation;
	__u32 flags;
	__u32 limited_by; /* enum tcp_chrono, when last looked */
	__u32 pad;
	__u64 due_ns; /* when a sample was due, whether the budget allowed it or not */
	struct fp_counted counted;
	struct fp_wide wide;
	struct fp_extremes extremes;
	__u64 state_ns;	  /* the last sample for a state that is no congestion signal */
	__u64 retrans_ns; /* the last sample for a retransmission */
};

/* Why a sample was made. */
enum fp_sample_kind {
	FP_SAMPLE_NOTHING,
	FP_SAMPLE_BEGIN,
	FP_SAMPLE_INTERVAL,
	FP_SAMPLE_STATE,
	FP_SAMPLE_CONGESTION,
	FP_SAMPLE_TIMEOUT,
	FP_SAMPLE_RETRANSMISSION,
	FP_SAMPLE_END,
	FP_SAMPLE_WALK,
};

/*
 * Who a connection is, and what the kernel says of it at one moment. Windows in packets
 * (segments) or bytes, ticks are the kernel's jiffies.
 */
struct fp_tcp {
	__u64 now_ns; /* CLOCK_MONOTONIC */
	__u64 cookie;
	__u64 cgroup_id;
	__u8 local_address[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u8 remote_address[16];
	__u16 local_port;
	__u16 remote_port;
	__u32 netns; /* inode */
	__u8 law[FP_LAW_LEN];

	__u64 bytes_sent;
	__u64 bytes_acked;
	__u64 bytes_received;
	__u64 bytes_retrans;
	__u64 pacing_rate_bytes_per_s;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 rcv_nxt;
	__u32 busy_ticks;
	__u32 receiver_limited_ticks;
	__u32 send_buffer_limited_ticks;

	__u32 srtt_us;
	__u32 rttvar_us;
	__u32 min_rtt_us; /* all ones: not measured */
	__u32 rto_ticks;
	__u32 rcv_rtt_us;
	__u32 mss_bytes;
	__u32 adv_mss_bytes;
	__u32 pmtu_bytes;
	__u32 dsack_dups;
	__u32 reord_seen;
	__u32 reordering_pkts;
	__u32 rcv_ooopack;

	__u32 cwnd_pkts;
	__u32 ssthresh_pkts;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 peer_window_bytes;
	__u32 max_peer_window_bytes;
	__u32 receive_window_bytes;
	__u32 rate_delivered_pkts; /* the latest delivery-rate sample, and its time */
	__u32 rate_interval_us;
	__u32 unsent_bytes;
	__u32 unread_bytes;
	__u32 reasm_queue_bytes; /* sequence space, from rcv_nxt to the farthest segment out of order */
	__u32 pad;

	__u32 send_buffer_bytes; /* sk_sndbuf: twice what setsockopt was given */
	__u32 receive_buffer_bytes;
	__u32 cwnd_clamp_pkts;
	__u32 window_clamp_bytes;
	__u32 flags; /* FP_SAMPLE_*; of a sample FP_ESTATS_* too */
	__u8 state;
	__u8 ca_state;
	__u8 limited_by; /* enum tcp_chrono */
	__u8 send_wscale;
	__u8 receive_wscale;
	__u8 retransmits;
	__u8 backoff;
	__u8 locked_buffers; /* SOCK_SNDBUF_LOCK, SOCK_RCVBUF_LOCK */
};

/*
 * BBR's model of a flow's path (bpf/cc/bbr_model.h). Bandwidths are in segments a microsecond and 2^-24; all ones is no
 * bound, and a time that was not measured.
 */
struct fp_bbr {
	__u32 phase; /* enum cc_bbr_phase, and 1; 0: the flow's law is not fp_bbr */
	__u32 bw;
	__u32 max_bw;
	__u32 bw_shortterm;
	__u32 min_rtt_us;
	__u32 inflight_longterm_pkts;
	__u32 inflight_shortterm_pkts;
	__u32 pad;
};

/* A flow at one moment, as the instruments see it. */
struct fp_sample {
	__u32 kind;    /* enum fp_sample_kind */
	__u32 rule_id; /* FP_NO_RULE: it matched none */
	struct fp_tcp tcp;
	struct fp_counted counted;
	struct fp_wide wide;
	struct fp_extremes extremes;
	struct fp_bbr bbr;
};

/* A tuned flow at one moment, and its settings. */
struct fp_flow_record {
	__u32 kind; /* enum fp_event_kind */
	__u32 segments_sent;
	__u32 segments_received;
	__u32 segments_retransmitted;
	struct fp_tcp tcp;
	struct fp_flow flow;
	struct fp_asked asked;
	__u64 socket_has[FP_SOCKET_SETTINGS]; /* in the unit of the row; timers in ticks */
	__u32 rude_mode;		      /* enum fp_rude_mode */
	__u32 rude_fair_cwnd_pkts;
	__u32 rude_marked_pkts;
	__u32 rude_user;
	struct fp_bbr bbr;
};

/* What the police of an interface does with marked segments. */
enum fp_police_mode {
	FP_POLICE_COUNT,
	FP_POLICE_DROP,
	FP_POLICE_RESET, /* both ends are answered with a RST */
	FP_POLICE_LIMIT, /* all marked segments together are held to a rate */
};

/* Where the police sees an interface's packets. */
enum fp_police_hook {
	FP_POLICE_XDP,
	FP_POLICE_TC,
};

/* The police of one interface: what police.bpf.c does, and what user space needs to undo it. */
struct fp_police {
	__u64 limit_bps; /* bits a second on the wire; FP_POLICE_LIMIT */
	__u32 mode;	 /* enum fp_police_mode */
	__u32 mark_bits; /* a marked segment has all of them; 0: the DSCP tells */
	__u32 mark_dscp;
	__u32 has_ethernet; /* 0: packets begin with IP */
	__u32 has_exceptions;
	__u32 watches;	   /* 1: unmarked flows are watched */
	__u32 hook;	   /* enum fp_police_hook */
	__u32 made_clsact; /* 1: there was none before */
	__u8 interface[16];
};

/* Among the counters of exceptions: the default of a family, so that ::/0 is not IPv4's too. */
#define FP_NOT_EXCEPTED 0x7fffffffffffffffull

/* Counters of a police, index into fp_police_tallies. Bytes are those of frames on the wire. */
enum fp_police_tally {
	FP_TALLY_UNMARKED, /* never touched */
	FP_TALLY_CUT,	   /* among the unmarked: TCP by its IP header, but malformed */
	FP_TALLY_MARKED,
	FP_TALLY_EXCEPTED, /* of the marked: passed by an exception */
	FP_TALLY_PASSED,   /* of the marked: passed by the mode */
	FP_TALLY_DROPPED,
	FP_TALLY_RESET,
	FP_TALLY_PENALIZED, /* of the unmarked: dropped, for their flow does not slow down */
	FP_TALLIES,
};

struct fp_tally {
	__u64 pkts;
	__u64 bytes;
};

/* One direction of a connection; IPv4 as ::ffff:a.b.c.d, ports in network order. */
struct fp_watched_flow {
	__u8 source[16];
	__u8 destination[16];
	__u16 source_port;
	__u16 destination_port;
};

/* What a router sees of a flow that is not marked. Sequence numbers are ends of segments. */
struct fp_watched {
	__u64 seen_ns; /* CLOCK_MONOTONIC */
	__u64 bytes;   /* of data, repeated ones too */
	__u64 repeated_bytes;
	__u64 syn_ns;	  /* of the SYN that no segment has followed yet */
	__u64 checked_ns; /* when `recent_end` was the highest */
	__u32 highest_end;
	__u32 recent_end;
	__u32 settled_end; /* the highest one at the check before: what repeats it is no reordering */
	__u32 rtt_us;	   /* from the SYN to the next segment; 0: the SYN was not seen */
	__u32 segment_bytes; /* the largest of data; GRO's may be several */
	__u32 loss_events;   /* retransmissions within a round trip are one */
	__u64 event_ns;	     /* when the last one began */
};

#endif
