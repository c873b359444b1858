/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that fatpath touches, and only their fields that it reads.
 *
 * CO-RE (preserve_access_index) finds each field's place in the running kernel,
 * so neither a vmlinux.h nor kernel headers are needed to build, and one object
 * runs on every kernel from 6.1 on. Bit fields are read with BPF_CORE_READ_BITFIELD, or
 * its PROBED form where the verifier does not know the type: their neighbours differ between kernels.
 */
#ifndef FATPATH_KERNEL_H
#define FATPATH_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

/* uapi constants; linux/in.h and asm/socket.h do not build for the bpf target everywhere. */
#define AF_INET 2
#define AF_INET6 10
#define SOL_SOCKET 1
#define SO_SNDBUF 7
#define SO_RCVBUF 8
#define SO_MAX_PACING_RATE 47
#define SOL_TCP 6
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define SOCK_STREAM 1
#define TCP_WINDOW_CLAMP 10
#define TCP_CONGESTION 13
#define TCP_NOTSENT_LOWAT 25

/* TCP_ESTABLISHED and its kind come with linux/bpf.h as BPF_TCP_*. */

#define SOCK_NOSPACE_BIT 2 /* SOCK_NOSPACE of struct socket.flags */
#define SOCK_SNDBUF_LOCK 1
#define SOCK_RCVBUF_LOCK 2
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define TCP_CA_OPEN 0
#define TCP_CA_DISORDER 1
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define EPERM 1
#define ENOMEM 12
#define EINVAL 22
#define ENOTCONN 107
#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT 2
#define CHECKSUM_PARTIAL 3
#define PACKET_BROADCAST 1
#define PACKET_MULTICAST 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

struct bpf_map {
	u32 id;
};

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	const struct tcp_congestion_ops *tcp_congestion_control; /* the namespace's default */
	int sysctl_tcp_rto_min_us;				 /* Linux 6.11 */
};

struct net {
	struct ns_common ns;
	u64 net_cookie;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

/* Memory of all sockets of a protocol, in pages; of `sysctl_mem` the second is where pressure begins. */
struct proto {
	s64 *memory_allocated;
	long *sysctl_mem;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct proto *skc_prot;
	struct {
		s64 counter;
	} skc_cookie;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

typedef struct {
	u32 val;
} kuid_t;

struct socket {
	unsigned long flags;
};

struct net_device {
	int ifindex;
};

struct dst_entry {
	struct net_device *dev;
	struct xfrm_state *xfrm;
	struct lwtunnel_state *lwtstate;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache; /* the route; NULL until the next segment looks it up */
	int sk_sndbuf;
	int sk_wmem_queued;
	int sk_rcvbuf;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u8 sk_userlocks;
	kuid_t sk_uid;
	struct socket *sk_socket;
	struct sock_cgroup_data sk_cgrp_data;
};

struct inet_sock {
	struct sock sk;
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* -1 = no sample */
};

/* Of what an acknowledgement delivered; times in microseconds, below 0: none. */
struct rate_sample {
	u64 prior_mstamp;    /* 0 = nothing was delivered */
	u32 prior_delivered; /* tp->delivered when the newest was sent */
	s32 delivered;	     /* in interval_us */
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	_Bool is_app_limited;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk); /* what follows differs before and after 6.10 */
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
};

struct inet_connection_sock_af_ops {
	u16 net_header_len; /* without options or extension headers */
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u32 icsk_rto_min;
	u32 icsk_delack_max;
	u32 icsk_pmtu_cookie;
	const struct tcp_congestion_ops *icsk_ca_ops;
	const struct inet_connection_sock_af_ops *icsk_af_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_setsockopt : 1; /* the law was set by setsockopt, or inherited from a socket where it was */
	u8 icsk_retransmits;
	u8 icsk_backoff;
	u16 icsk_ext_hdr_len; /* of those options and extension headers */
	struct {
		u32 lrcvtime; /* of the last data */
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u16 tstamp_ok : 1, sack_ok : 3, snd_wscale : 4, rcv_wscale : 4;
	u16 mss_clamp;
};

struct tcp_rack {
	u32 rtt_us;
};

struct rb_node;

struct rb_root {
	struct rb_node *rb_node;
};

struct sk_buff {
	u8 ip_summed : 2;
	char cb[48]; /* of TCP's own: struct tcp_skb_cb */
};

struct tcp_skb_cb {
	u32 end_seq;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 bytes_received;
	u64 bytes_acked;
	u64 bytes_retrans;
	u64 bytes_sent;
	u32 segs_in;
	u32 data_segs_in;
	u32 segs_out;
	u32 data_segs_out;
	u16 tcp_header_len;
	u32 lsndtime;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 high_seq;	  /* snd_nxt when recovery began */
	u32 tlp_high_seq; /* snd_nxt when the tail loss probe left that is not answered, or 0 */
	u32 total_retrans;
	u32 dsack_dups;
	u32 reord_seen;
	u32 reordering;
	u32 rcv_ooopack;
	struct rb_root out_of_order_queue;
	struct sk_buff *ooo_last_skb; /* stale while the queue is empty */
	u64 tcp_wstamp_ns;	      /* when the next segment may leave */
	u64 tcp_clock_cache;	      /* now, at this event */
	u32 srtt_us;
	u32 mdev_us;
	struct tcp_rack rack;
	struct {
		u32 rtt_us;
	} rcv_rtt_est;
	u32 mss_cache;
	u16 advmss;
	u32 packets_out;
	u32 max_packets_out;
	u32 lost_out;
	u32 sacked_out;
	u32 retrans_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u8 ecn_flags;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 app_limited;
	u64 tcp_mstamp;
	u32 snd_wnd;
	u32 max_window;
	u32 rcv_wnd;
	u32 window_clamp;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 undo_marker;
	u32 notsent_lowat;
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 chrono_type : 2;
	u8 is_cwnd_limited : 1;
	u8 rate_app_limited : 1;
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
};

struct signal_struct {
	struct {
		int counter;
	} live; /* threads that have not ended */
};

struct task_struct {
	int pid;  /* of the thread, in the first PID namespace */
	int tgid; /* of the process */
	u64 start_time;
	struct task_struct *group_leader;
	struct signal_struct *signal;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* enum tcp_chrono */
#define TCP_CHRONO_BUSY 1
#define TCP_CHRONO_RWND_LIMITED 2
#define TCP_CHRONO_SNDBUF_LIMITED 3

#endif
