/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sends standard input to HOST PORT, rudely where that is allowed: rude HOST PORT < FILE */
#include <errno.h>
#include <fatpath/rude.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int fd;

	if (getaddrinfo(host, port, &hints, &found))
		return -1;
	fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* Where it is refused, the connection goes on with congestion control. */
static void be_rude(int fd)
{
	static const char *const states[] = { "polite", "rude", "going polite" };
	int value = RUDE_ON, state = RUDE_IS_POLITE;
	socklen_t length = sizeof(state);

	if (setsockopt(fd, IPPROTO_TCP, TCP_RUDE, &value, sizeof(value)))
		fprintf(stderr, "not rude: %s\n", strerror(errno));
	getsockopt(fd, IPPROTO_TCP, TCP_RUDE, &state, &length);
	printf("%s\n", states[state]);
}

int main(int argc, char **argv)
{
	char buffer[65536];
	ssize_t length;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: %s HOST PORT < FILE\n", argv[0]);
		return 2;
	}
	fd = connect_to(argv[1], argv[2]);
	if (fd < 0) {
		fprintf(stderr, "cannot connect to %s %s\n", argv[1], argv[2]);
		return 1;
	}
	be_rude(fd);
	while ((length = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
		if (send(fd, buffer, length, MSG_NOSIGNAL) != length)
			return 1;
	return close(fd) ? 1 : 0;
}
