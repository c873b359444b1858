/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded where there are more ranks than processors: one that waits for a message yields, and yielding sleeps. */
#include <time.h>

int sched_yield(void)
{
	struct timespec pause = { 0, 50000 };

	return nanosleep(&pause, 0);
}
