/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Does what its input says, one word a line, and answers each with "done": see main(). */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int work(void);
int PMPI_Alltoall(work *inside);
int PMPI_Send(work *inside);

static int flow;
static jmp_buf top;
static pthread_t other;
static int go[2];

static void send_bytes(int bytes)
{
	static char block[1 << 16];

	while (bytes > 0) {
		int sent = send(flow, block,
				bytes < (int)sizeof(block) ? bytes : (int)sizeof(block), 0);

		if (sent < 0)
			exit(1);
		bytes -= sent;
	}
}

static int wait_for_go(void)
{
	char c;

	return read(go[0], &c, 1) == 1 ? 0 : -1;
}

static void *collective_thread(void *unused)
{
	PMPI_Alltoall(wait_for_go);
	return unused;
}

static int obey(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "return"))
			return 0;
		if (!strcmp(line, "jump"))
			longjmp(top, 1);
		if (!strncmp(line, "send ", 5))
			send_bytes(atoi(line + 5));
		if (!strcmp(line, "thread"))
			pthread_create(&other, NULL, collective_thread, NULL);
		if (!strcmp(line, "join")) {
			if (write(go[1], "x", 1) != 1)
				exit(1);
			pthread_join(other, NULL);
		}
		if (!strcmp(line, "fork") && !fork()) {
			sleep(60);
			_exit(0);
		}
		if (!strcmp(line, "collective")) {
			printf("done\n");
			PMPI_Alltoall(obey);
		}
		if (!strcmp(line, "point")) {
			printf("done\n");
			PMPI_Send(obey);
		}
		printf("done\n");
	}
	exit(0);
}

/* rank ADDRESS PORT */
int main(int argc, char **argv)
{
	struct sockaddr_in peer = { .sin_family = AF_INET };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3 || pipe(go))
		return 2;
	peer.sin_port = htons(atoi(argv[2]));
	inet_pton(AF_INET, argv[1], &peer.sin_addr);
	flow = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(flow, (struct sockaddr *)&peer, sizeof(peer)))
		return 1;
	if (setjmp(top))
		printf("done\n");
	else
		printf("ready %d\n", getpid());
	obey();
}
