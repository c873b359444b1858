/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library with MPI's names, as the probes see them: one collective made of another, and one function that is none. */
typedef int work(void);

int PMPI_Allreduce(work *inside)
{
	return inside() + 1;
}

int PMPI_Alltoall(work *inside)
{
	return PMPI_Allreduce(inside) + 1;
}

int PMPI_Send(work *inside)
{
	return inside() + 1;
}
