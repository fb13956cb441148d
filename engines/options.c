// SPDX-License-Identifier: GPL-2.0
/*
 * The engine's options.  Where the meaning is the same they are called as in
 * fio's io_uring_cmd engine, so that a job moves over by its ioengine= and
 * filename= alone.
 */
#include <fio.h>
#include <optgroup.h>

#include "nvqueue.h"

static int sqpoll_cpu_cb(void *data, unsigned long long *val)
{
	struct nvqueue_options *o = data;

	o->sqpoll_cpu = *val;
	o->sqpoll_set = 1;
	return 0;
}

/* Not given differs from 0: then the queue file decides. */
static int hipri_cb(void *data, int *val)
{
	struct nvqueue_options *o = data;

	o->hipri = !!*val;
	o->hipri_set = 1;
	return 0;
}

struct fio_option nvqueue_options[] = {
	{
		.name = "hipri",
		.lname = "Polled completions",
		.type = FIO_OPT_STR_SET,
		.cb = hipri_cb,
		.help = "Poll for completions (default: what the queue file is)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "fixedbufs",
		.lname = "Fixed (pre-mapped) IO buffers",
		.type = FIO_OPT_STR_SET,
		.off1 = offsetof(struct nvqueue_options, fixedbufs),
		.help = "Register the I/O buffers with io_uring",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "registerfiles",
		.lname = "Register file set",
		.type = FIO_OPT_STR_SET,
		.off1 = offsetof(struct nvqueue_options, registerfiles),
		.help = "Register the queue files with io_uring",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "sqthread_poll",
		.lname = "Kernel SQ thread polling",
		.type = FIO_OPT_STR_SET,
		.off1 = offsetof(struct nvqueue_options, sqpoll_thread),
		.help = "Let a kernel thread submit and reap",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "sqthread_poll_cpu",
		.lname = "SQ Thread Poll CPU",
		.type = FIO_OPT_INT,
		.cb = sqpoll_cpu_cb,
		.help = "CPU of the kernel thread of sqthread_poll",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "nonvectored",
		.lname = "Non-vectored",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct nvqueue_options, nonvectored),
		.def = "-1",
		.help = "0: pass data as an iovec (default: 1)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "cmd_type",
		.lname = "Uring cmd type",
		.type = FIO_OPT_STR,
		.off1 = offsetof(struct nvqueue_options, cmd_type),
		.def = "nvme",
		.posval = {
			{ .ival = "nvme", .oval = 1,
			  .help = "Issue nvme-uring-cmd", },
		},
		.help = "Accepted for jobs of the io_uring_cmd engine",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "phase_check",
		.lname = "Check the phase bit",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct nvqueue_options, phase_check),
		.def = "1",
		.help = "Look for completions in the mapped completion queue and enter the kernel only to reap what is there (0: poll in the kernel)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "submit",
		.lname = "Way of submission",
		.type = FIO_OPT_STR,
		.off1 = offsetof(struct nvqueue_options, submit),
		.posval = {
			{ .ival = "native", .oval = NVQUEUE_SUBMIT_NATIVE,
			  .help = "A batch is one io_uring command", },
			{ .ival = "native_ioctl", .oval = NVQUEUE_SUBMIT_IOCTL,
			  .help = "A batch is one ioctl", },
			{ .ival = "standard", .oval = NVQUEUE_SUBMIT_STANDARD,
			  .help = "NVMe passthrough, an io_uring command each", },
		},
		.help = "How commands get to the kernel (default: native; native_ioctl at iodepth=1; standard with phase_check=0 or nonvectored=0)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "queue_kind",
		.lname = "Kind of queue",
		.type = FIO_OPT_STR,
		.off1 = offsetof(struct nvqueue_options, queue_kind),
		.posval = {
			{ .ival = "poll", .oval = NVQ_KIND_POLL,
			  .help = "Polled queue", },
			{ .ival = "irq", .oval = NVQ_KIND_IRQ,
			  .help = "Queue with an interrupt of its own", },
		},
		.help = "Kind of queue to claim where filename is a controller (default: poll)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "queue_map",
		.lname = "Jobs to queue files",
		.type = FIO_OPT_STR,
		.off1 = offsetof(struct nvqueue_options, queue_map),
		.def = "auto",
		.posval = {
			{ .ival = "auto", .oval = NVQUEUE_MAP_AUTO,
			  .help = "spread if numjobs is above 1 and only queue files are named, else all", },
			{ .ival = "all", .oval = NVQUEUE_MAP_ALL,
			  .help = "Each job drives every file", },
			{ .ival = "spread", .oval = NVQUEUE_MAP_SPREAD,
			  .help = "Job n drives the n-th file alone", },
		},
		.help = "Which files of filename each of numjobs jobs drives",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "queue_offset",
		.lname = "First queue",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct nvqueue_options, queue_offset),
		.def = "0",
		.help = "Queue (or file, with queue_map=spread) that job 0 takes; job n takes the n-th after it",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "nsid",
		.lname = "Namespace",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct nvqueue_options, nsid),
		.def = "0",
		.help = "Namespace to address (default: the lowest active one)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = "queue_stats",
		.lname = "Count system calls",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct nvqueue_options, queue_stats),
		.def = "0",
		.help = "At the end print how many system calls each job made, and how many of them found nothing to reap",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_IOURING,
	},
	{
		.name = NULL,
	},
};
