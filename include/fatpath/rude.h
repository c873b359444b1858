/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TCP_RUDE: a connection without congestion control, where the administrator of the host
 * allows it. Needs fatpath's daemon to have been started; see fatpath-rude(7).
 *
 *     int value = RUDE_ON;
 *     setsockopt(fd, IPPROTO_TCP, TCP_RUDE, &value, sizeof value);
 *
 * getsockopt() gives RUDE_IS_POLITE, RUDE_IS_RUDE or RUDE_IS_GOING_POLITE.
 */
#ifndef FATPATH_RUDE_OPTION_H
#define FATPATH_RUDE_OPTION_H

/* At IPPROTO_TCP. Far from the kernel's own options. */
#define TCP_RUDE 0x7001

/* To set. */
#define RUDE_OFF_NOW 0	  /* polite at once, with the window that a polite flow would have */
#define RUDE_ON 1	  /* EPERM where it is not allowed, ENOTCONN before it is connected */
#define RUDE_OFF_NICELY 2 /* polite when the window has come down to that by and by */

/* To get. */
#define RUDE_IS_POLITE 0
#define RUDE_IS_RUDE 1
#define RUDE_IS_GOING_POLITE 2

#endif
