/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded where there are more ranks than processors: one that waits for a message yields, and yielding sleeps. */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <time.h>

int sched_yield(void)
{
	struct timespec pause = { 0, 500000 };

	return nanosleep(&pause, 0);
}

#ifdef POLLS
/* MPICH's UCX does not yield: it asks for events without end. */
int epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms)
{
	int got = epoll_pwait(set, events, most, timeout_ms, 0);

	if (!got && !timeout_ms)
		sched_yield();
	return got;
}
#endif
