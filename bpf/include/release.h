/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What another build needs to release this one: to know it, to take its flows off it and to undo its marks.
 *
 * A later or an earlier build finds these in the pins and uses them as they are here, so no number, no layout and
 * no name here changes, ever, whatever FP_ABI_VERSION says; crates/kernel/src/release.rs checks them. To it belong
 * the maps fp_build, fp_walk and fp_marks, fp_control, of which all zeros mean that no policy is live, and the pins
 * link_tune, link_sample_flow, link_walk, prog_mark_ethernet, prog_mark_bare and those that begin with law_.
 */
#ifndef FATPATH_RELEASE_H
#define FATPATH_RELEASE_H

/* Which build pinned what lies here. Written last, so a load that was cut short has build 0. */
struct fp_build {
	__u64 hash;	 /* of the objects */
	__u64 cgroup_id; /* whose flows are tuned */
	__u32 abi_version;
	__u32 pad;
};

/* fp_walk.mode: undo what can be undone: laws, deferred buffers. The other walks are the build's own (abi.h). */
#define FP_WALK_RELEASE 3u

/* The orders of a walk over live sockets, and what it counted. */
struct fp_walk {
	__u64 cgroup_id; /* only flows of this cgroup and below meet the policy; 0 = all */
	__u32 mode;	 /* FP_WALK_RELEASE or enum fp_walk_mode */
	__u32 seen;	 /* counted by the walk */
	__u32 changed;	 /* counted by the walk */
	__u32 pad;
	__u8 law[16]; /* the namespace's default law: for flows that lose ours */
};

/* Key of fp_marks: an interface of a network namespace. */
struct fp_interface {
	__u32 netns; /* inode */
	__u32 ifindex;
};

/* What was done to an interface so that its segments are marked. */
struct fp_mark {
	__u32 made_clsact; /* 1: there was none before */
	__u32 is_whole;	   /* 0: it was cut short before its filter was noted */
};

#endif
