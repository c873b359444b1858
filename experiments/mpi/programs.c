/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What MPI programs do over two clusters, one part at a time; ranks 0 to n/2 - 1 are in one cluster, the others in the
 * other. programs PART [BYTES] prints the seconds that rank 0 took, and the bytes of data that crossed between the
 * clusters meanwhile in one direction. Matsuda et al., "TCP Adaptation for MPI on Long-and-Fat Networks", 2005.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ranks, rank;
static int bytes_each = 65536; /* from each rank to each, in an all-to-all */

struct took {
	double seconds;
	double bytes;
};

static char *room(size_t bytes)
{
	char *at = malloc(bytes);

	if (!at)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return memset(at, rank, bytes);
}

static void all_to_all(int times, int bytes)
{
	char *from = room((size_t)bytes * ranks), *to = room((size_t)bytes * ranks);

	while (times--)
		MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
	free(from);
	free(to);
}

/* From the first rank to the first of the other cluster, which answers when all is there. */
static void one_to_one(int bytes)
{
	char *data = room(bytes);
	int other = ranks / 2;

	if (rank == 0) {
		MPI_Send(data, bytes, MPI_CHAR, other, 0, MPI_COMM_WORLD);
		MPI_Recv(data, 1, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == other) {
		MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(data, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
	free(data);
}

static struct took alltoall(void)
{
	struct took took = { 0, 4.0 * bytes_each * ranks * ranks / 4 };
	double begun;

	all_to_all(1, 1024);
	MPI_Barrier(MPI_COMM_WORLD);
	begun = MPI_Wtime();
	all_to_all(4, bytes_each);
	took.seconds = MPI_Wtime() - begun;
	return took;
}

/* Sections 2.1 and 4.4: what the collective leaves behind, and one sender that could have the whole path. */
static struct took one(void)
{
	struct took took = { 0, 3 * 20e6 };
	double begun;
	int times;

	for (times = 0; times < 3; times++) {
		all_to_all(4, bytes_each);
		MPI_Barrier(MPI_COMM_WORLD);
		begun = MPI_Wtime();
		one_to_one(20000000);
		took.seconds += MPI_Wtime() - begun;
	}
	return took;
}

/* Section 4.3: chunks of 10 MB with pauses longer than a retransmission timeout between them. */
static struct took chunks(void)
{
	struct took took = { 0, 3 * 10e6 };
	double begun;
	int times;

	for (times = 0; times < 3; times++) {
		usleep(1000000);
		begun = MPI_Wtime();
		one_to_one(10000000);
		took.seconds += MPI_Wtime() - begun;
	}
	return took;
}

/*
 * The shape of NPB's IS: each round counts keys by bucket (all-reduce of 1024 numbers), tells how many go where
 * (all-to-all of one number), and sends the keys there (all-to-all of 2 MiB a rank, of sizes that differ a little).
 */
static struct took sort(void)
{
	enum { KEYS = 1 << 19, BUCKETS = 1024, ROUNDS = 5 };
	struct took took = { 0, (double)ROUNDS * KEYS * 4 * ranks / 4 };
	int *counts = (int *)room(BUCKETS * sizeof(int)),
	    *sums = (int *)room(BUCKETS * sizeof(int));
	int *keys = (int *)room(2 * KEYS * sizeof(int)),
	    *sorted = (int *)room(2 * KEYS * sizeof(int));
	int to[64], to_at[64], from[64], from_at[64], i, round;
	double begun;

	MPI_Barrier(MPI_COMM_WORLD);
	begun = MPI_Wtime();
	for (round = 0; round < ROUNDS; round++) {
		MPI_Allreduce(counts, sums, BUCKETS, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
		for (i = 0; i < ranks; i++)
			to[i] = KEYS / ranks / 16 * (16 + ((rank + i + round) % 3 - 1));
		MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
		to_at[0] = from_at[0] = 0;
		for (i = 1; i < ranks; i++) {
			to_at[i] = to_at[i - 1] + to[i - 1];
			from_at[i] = from_at[i - 1] + from[i - 1];
		}
		MPI_Alltoallv(keys, to, to_at, MPI_INT, sorted, from, from_at, MPI_INT,
			      MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	took.seconds = MPI_Wtime() - begun;
	return took;
}

/* As many collectives a second as there can be without a network: what the probes cost. */
static struct took reductions(void)
{
	struct took took = { 0, 1e5 };
	int value = 1, sum, times;
	double begun = MPI_Wtime();

	for (times = 0; times < 100000; times++)
		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
	took.seconds = MPI_Wtime() - begun;
	return took;
}

static const struct {
	const char *name;
	struct took (*run)(void);
} parts[] = { { "alltoall", alltoall },
	      { "one", one },
	      { "chunks", chunks },
	      { "sort", sort },
	      { "reductions", reductions } };

static int are_right(int argc, char **argv)
{
	if (argc == 3)
		bytes_each = atoi(argv[2]);
	return (argc == 2 || argc == 3) && bytes_each > 0 && ranks <= 64;
}

int main(int argc, char **argv)
{
	unsigned int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; are_right(argc, argv) && i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct took took;

		if (strcmp(parts[i].name, argv[1]))
			continue;
		took = parts[i].run();
		if (rank == 0) {
			printf("%f %f\n", took.seconds, took.bytes);
			fflush(stdout);
		}
		MPI_Finalize();
		return 0;
	}
	if (rank == 0)
		fprintf(stderr,
			"programs alltoall|one|chunks|sort|reductions [BYTES], up to 64 ranks\n");
	MPI_Abort(MPI_COMM_WORLD, 2);
}
