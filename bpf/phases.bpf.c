/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Phases of programs that know nothing of it: which processes are in a collective operation of their communication
 * library, by probes at the entry and the return of its functions, and whose the sockets are.
 *
 * A thread is in a phase from the entry of a function to its return. Functions call each other (a collective is made
 * of others in some libraries): only the outermost counts, which is known by the place of its return address on the
 * stack. So a return that nobody saw (a longjmp out of the function) is noticed at the next call from there or above.
 *
 * Attached only while a rule of the live policy differs by phase, by the daemon, with which the probes go. Nothing
 * here can change what a program does; a map that is full leaves processes out. Start reading at entered().
 */
#include "include/kernel.h"
#include "include/maps.h"
#include <linux/ptrace.h>

/* A thread that called a function of a phase. */
struct thread {
	u64 stack; /* where its return address lies; 0: it is in no phase */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline struct fp_process *process_of(struct task_struct *task)
{
	u32 number = task->tgid;
	struct fp_process *process = bpf_map_lookup_elem(&fp_processes, &number);
	struct fp_process fresh = {};

	if (process && process->start_ns == task->group_leader->start_time)
		return process;
	fresh.start_ns = task->group_leader->start_time;
	fresh.since_ns = bpf_ktime_get_ns();
	/* Of another process that had the number. */
	if (process)
		bpf_map_delete_elem(&fp_processes, &number);
	/* Another thread may have made it meanwhile, and count already. */
	bpf_map_update_elem(&fp_processes, &number, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&fp_processes, &number);
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	u32 number = task->pid;
	struct thread *thread = bpf_map_lookup_elem(&threads, &number), none = {};

	if (thread)
		return thread;
	if (bpf_map_update_elem(&threads, &number, &none, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&threads, &number);
}

static __always_inline void begin_phase(struct fp_process *process)
{
	if (__sync_fetch_and_add(&process->threads, 1))
		return;
	process->entered_ns = bpf_ktime_get_ns();
	process->phases++;
}

static __always_inline void end_phase(struct fp_process *process)
{
	if (__sync_fetch_and_add(&process->threads, -1) == 1)
		process->collective_ns += bpf_ktime_get_ns() - process->entered_ns;
}

/* A frame above the outermost call: that one is over, whether its return was seen or not. */
static __always_inline int is_over(const struct thread *thread, u64 stack)
{
	return thread->stack && thread->stack <= stack;
}

SEC("uprobe")
int entered(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fp_process *process = process_of(task);
	struct thread *thread = process ? thread_of(task) : NULL;
	u64 stack = PT_REGS_SP(ctx);

	if (!thread)
		return 0;
	__sync_fetch_and_add(&process->calls, 1);
	if (thread->stack && !is_over(thread, stack))
		return 0;
	if (!thread->stack)
		begin_phase(process);
	thread->stack = stack;
	return 0;
}

SEC("uretprobe")
int returned(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = task->tgid, of_thread = task->pid;
	struct fp_process *process = bpf_map_lookup_elem(&fp_processes, &number);
	struct thread *thread = bpf_map_lookup_elem(&threads, &of_thread);

	if (!process || !thread || !is_over(thread, PT_REGS_SP(ctx)))
		return 0;
	thread->stack = 0;
	end_phase(process);
	return 0;
}

/* Of the thread nothing is left, and of the process neither, with its last thread. */
static __always_inline void forget(struct task_struct *task, int is_last)
{
	u32 number = task->tgid, of_thread = task->pid;
	struct fp_process *process = bpf_map_lookup_elem(&fp_processes, &number);
	struct thread *thread = bpf_map_lookup_elem(&threads, &of_thread);

	if (process && thread && thread->stack)
		end_phase(process);
	if (thread)
		bpf_map_delete_elem(&threads, &of_thread);
	if (process && is_last)
		bpf_map_delete_elem(&fp_processes, &number);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *task)
{
	forget(task, task->signal->live.counter == 0);
	return 0;
}

/* Another program in the same process: its other threads have ended, and this one may have got the number of the first. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task, int old_number)
{
	u32 of_thread = old_number;

	bpf_map_delete_elem(&threads, &of_thread);
	forget(task, 1);
	return 0;
}

SEC("cgroup/sock_create")
int own_socket(struct bpf_sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fp_owner *owner;

	if (sk->type != SOCK_STREAM || sk->protocol != IPPROTO_TCP ||
	    (sk->family != AF_INET && sk->family != AF_INET6))
		return 1;
	owner = bpf_sk_storage_get(&fp_owners, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!owner)
		return 1;
	owner->process = task->tgid;
	owner->start_ns = task->group_leader->start_time;
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
