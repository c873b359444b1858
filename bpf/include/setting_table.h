/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings that a rule can give a flow, one a row. A new one that a socket option carries is a row
 * here, and in kernel.h the option's number and the field of the socket that it changes.
 *
 * crates/policy/src/setting/table.rs is generated from this file (cargo xtask abi), and the table of
 * docs/policy.md from that (cargo xtask docs); a check fails when they differ.
 */
#ifndef FATPATH_SETTING_TABLE_H
#define FATPATH_SETTING_TABLE_H

/* A share of a divided buffer is never so small that it stops a flow: the window of TCP without scaling. */
#define FP_MIN_SHARE_BYTES 65536
/* TCP_RTO_MIN and TCP_DELACK_MAX of the kernel. */
#define FP_KERNELS_RTO_MIN_US 200000
#define FP_KERNELS_DELACK_MAX_US 200000
#define FP_NO_PACING_RATE 0xffffffff
/* RUDE_OFF_NICELY ends when R is so close to F, in thousandths of F: 1 % in section 3.2 of the paper. */
#define FP_RUDE_CONVERGED_MILLI 10

/*
 * X(NAME, key, unit, least, most, stage, way, forms, becomes)
 *
 *   NAME     FP_NAME is its number (enum fp_setting)
 *   key      its name in the policy file; with the unit behind it, in the flow log
 *   unit     of a number: bytes, pkts, us, bps (bits a second), milli (thousandths); truth, word, law, users
 *   least    and most: the range of a number, whole numbers
 *   stage    BEFORE_SYN: the SYN depends on it; ESTABLISHED: only a flow that begins is given it;
 *            LIVE: one that begins, and one that lives
 *   way      how it reaches a flow:
 *     OPTION(level, option, has, own)         bpf_setsockopt of the number of the rule; `has` is what the socket has,
 *              `own` what it has where neither its program nor fatpath set it
 *     TIMER(level, option, has, own)          the same of a timer that the kernel keeps in its ticks; `own` in us
 *     OWN(has)                                the socket is given it by code of its own in settings.h
 *     LAWS                                    the laws of bpf/cc read it of the rule
 *     RUDE                                    Rude TCP reads it of the rule
 *     ROUTE                                   no socket has it: a metric of routes
 *     RULE                                    it changes what other settings of the rule do
 *   forms    how it is written, for people
 *   becomes  what it does, for the manual
 *
 * In `has`: tp, icsk and sk are the socket as its three types, flow is its struct fp_flow. Those that a socket
 * is given come first (FP_SOCKET_SETTINGS), then those whose value a rule holds (FP_RULE_VALUES).
 */
/* clang-format off */
#define FP_SETTING_TABLE(X)                                                                        \
	X(SEND_BUFFER, send_buffer, bytes, 4096, 1073741823, LIVE,                                 \
	  OWN(sk->sk_sndbuf >> 1),                                                                  \
	  "\"25MB\", \"32MiB\", \"bdp\" or \"1.5bdp\"",                                            \
	  "SO_SNDBUF; the kernel doubles it, as for every setsockopt")                             \
	X(RECEIVE_BUFFER, receive_buffer, bytes, 4096, 1073741823, BEFORE_SYN,                     \
	  OWN(sk->sk_rcvbuf >> 1),                                                                  \
	  "\"25MB\", \"32MiB\", \"bdp\" or \"1.5bdp\"",                                            \
	  "SO_RCVBUF; the kernel doubles it, too")                                                 \
	X(LAW, congestion_control, law, 0, 0, LIVE,                                                \
	  OWN(0),                                                                                  \
	  "the name of a registered law, such as \"cubic\", or { law = \"fp_aimd\", a = 6, b = 0.3 }", \
	  "TCP_CONGESTION, and the law's parameters: see below")                                   \
	X(INITIAL_WINDOW, initial_window, pkts, 1, 65535, ESTABLISHED,                             \
	  OWN(flow->initial_cwnd_pkts),                                                            \
	  "",                                                                                      \
	  "TCP_BPF_IW")                                                                            \
	X(CWND_CLAMP, cwnd_clamp, pkts, 2, 1048576, LIVE,                                          \
	  OWN(tp->snd_cwnd_clamp),                                                                 \
	  "",                                                                                      \
	  "TCP_BPF_SNDCWND_CLAMP, which also bounds ssthresh")                                     \
	X(PACING, pacing, truth, 0, 1, LIVE,                                                       \
	  OWN(sk->sk_pacing_status != SK_PACING_NONE),                                             \
	  "",                                                                                      \
	  "the kernel's own pacing, with any law: twice the window a round trip in slow start, 1.2 times after it; false is the same as leaving it out") \
	X(RTO_MIN, rto_min, us, 1000, 200000, LIVE,                                                \
	  TIMER(SOL_TCP, TCP_BPF_RTO_MIN, icsk->icsk_rto_min, kernels_rto_min_us(sk)),             \
	  "\"20ms\"",                                                                              \
	  "TCP_BPF_RTO_MIN; two ticks of the kernel at least (8 ms at 250 Hz)")                     \
	X(DELAYED_ACK_MAX, delayed_ack_max, us, 1000, 200000, LIVE,                                \
	  TIMER(SOL_TCP, TCP_BPF_DELACK_MAX, icsk->icsk_delack_max, FP_KERNELS_DELACK_MAX_US),     \
	  "\"20ms\"",                                                                              \
	  "TCP_BPF_DELACK_MAX; two ticks of the kernel at least (8 ms at 250 Hz)")                  \
	X(PACING_RATE, pacing_rate, bps, 8000, 34000000000, LIVE,                                  \
	  OWN(bits(sk->sk_max_pacing_rate)),                                                       \
	  "\"900mbit\", or \"500mbit/n\"",                                                         \
	  "SO_MAX_PACING_RATE; the smaller where the program set one, too. With \"/n\" each of the rule's n flows that send has 1/n: see below") \
	X(NOTSENT_LOWAT, notsent_lowat, bytes, 1, 1073741823, LIVE,                                \
	  OPTION(SOL_TCP, TCP_NOTSENT_LOWAT, tp->notsent_lowat, 0),                                \
	  "\"128KiB\" or \"1MB\"",                                                                 \
	  "TCP_NOTSENT_LOWAT")                                                                     \
	X(MAX_SSTHRESH, max_ssthresh, pkts, 2, 1048576, LIVE, LAWS,                                \
	  "",                                                                                      \
	  "limited slow start (RFC 3742) beyond this window; an `fp_` law only")                   \
	X(INITIAL_SSTHRESH, initial_ssthresh, pkts, 2, 1048576, ESTABLISHED, LAWS,                 \
	  "or \"bdp\"",                                                                            \
	  "the slow-start threshold of a new flow; an `fp_` law only")                             \
	X(INITIAL_RATE, initial_rate, bps, 8000, 1000000000000, ESTABLISHED, LAWS,                 \
	  "\"500mbit\"",                                                                           \
	  "a new flow starts paced at this rate; an `fp_` law only")           \
	X(AFTER_IDLE, after_idle, word, 0, 0, LIVE, LAWS,                                          \
	  "\"restart\", \"keep\" or \"pace\"",                                                     \
	  "the window after a pause longer than the RTO; an `fp_` law only")                       \
	X(HYSTART, hystart, truth, 0, 1, LIVE, LAWS,                                               \
	  "",                                                                                      \
	  "slow start ends when the round-trip time rises (RFC 9406); an `fp_` law only, and on for `fp_cubic` unless `false`")          \
	X(MAX_BURST, max_burst, pkts, 4, 65535, LIVE, LAWS,                                        \
	  "",                                                                                      \
	  "the most that leaves between one ACK and the next, and after a pause before the first: see below; an `fp_` law only") \
	X(RUDENESS, rude, word, 0, 0, LIVE, RUDE,                                                  \
	  "\"never\", \"allowed\" or \"always\"",                                                  \
	  "whether a flow may go on without congestion control, once `fatpath rude on` opened the gate") \
	X(RUDE_RATE, rude_rate, bps, 8000, 1000000000000, LIVE, RUDE,                              \
	  "\"500mbit\", or \"unlimited\"",                                                         \
	  "the rate at which a rude flow is paced; left out, the rate is estimated; unlimited, the flow's window alone bounds it") \
	X(RUDE_TOTAL_RATE, rude_total_rate, bps, 8000, 1000000000000, LIVE, RUDE,                  \
	  "\"500mbit\"",                                                                           \
	  "the total rate of the rule's rude flows: each of n is paced at 1/n of it, at most")     \
	X(RUDE_USERS, rude_users, users, 0, 0, LIVE, RUDE,                                         \
	  "a list of names of users, or their numbers: [\"alice\", 1000]",                         \
	  "only these may be rude")                                                                \
	X(RUDE_CONVERGED, rude_converged, milli, 1, 1000, LIVE, RUDE,                              \
	  "",                                                                                      \
	  "RUDE_OFF_NICELY ends when the window R is within this fraction of the fair window F; left out, 0.01") \
	X(REORDERING, reordering, pkts, 3, 300, LIVE, ROUTE,                                       \
	  "",                                                                                      \
	  "route metric `reordering`")                                                             \
	X(QUICKACK, quickack, truth, 0, 1, LIVE, ROUTE,                                            \
	  "",                                                                                      \
	  "route metric `quickack`; false is the same as leaving it out")                          \
	X(OVERRIDE_APPLICATION, override_application, truth, 0, 1, BEFORE_SYN, RULE,               \
	  "",                                                                                      \
	  "the program's own setsockopt of a buffer that the rule sets is ignored, and its own law, pacing rate, timers and low-water mark give way to the rule's; needs one of these settings") \
	X(DIVIDE, divide, truth, 0, 1, LIVE, RULE,                                                 \
	  "",                                                                                      \
	  "the rule's flows that carried data in the last 5 s share its buffers: each of n gets 1/n, 64 KiB at least; needs a buffer")
/* clang-format on */

#endif
