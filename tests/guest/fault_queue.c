// SPDX-License-Identifier: MIT
/*
 * Faults that cost one queue at most: a lost command, a completion under an id
 * nobody has, a lost interrupt.  On each kind of queue and each way in every
 * command ends once, with the drive's status where the drive gave one; the
 * escalation takes its steps in order and none too many; the neighbour's queue
 * is the one it began with.
 *
 * The module has io_timeout=1 and admin_timeout=2.
 *
 * usage: fault_queue [small]
 *
 * With "small" what needs a queue of 8, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faulty.h"
#include "tap.h"

static const char *const way_names[] = { "standard", "native" };

static int qid_of(const struct batch *b)
{
	return b->n.q.g.qid;
}

static const char *gone_of(const struct batch *b)
{
	return b->way == WAY_NATIVE ? " deleted, up to" : " recreated";
}

/* ---- one command of a batch has no completion ------------------------------ */

static void lost_one(const char *fault, const char *node, const char *other,
		     enum way way)
{
	unsigned int before, resets = ctrl_generation();
	struct busy_neighbour n;
	struct batch b;
	uint64_t begun;

	diag("%s, %s, %s", fault, node, way_names[way]);
	batch_open(&b, node, way, 0);
	neighbour_start(&n, other, 4096);
	before = batch_generation(&b);
	log_begin();
	begun = now_ms();
	fault_arm("%s %d 5", fault, qid_of(&b));
	batch_submit(&b);
	ok(batch_collect(&b, 60000), "every command ends once");
	ok(now_ms() - begun >= 1000, "the lost one not before its time (%llu ms)",
	   (unsigned long long)(now_ms() - begun));
	is(fault_hits(fault), 1, "one was lost");
	is(b.strays, way == WAY_NATIVE && !strcmp(fault, "stray"),
	   "the CQ shows the entry that names nobody");
	is(batch_count(&b, 0), BATCH_NR - 1, "all but one succeed");
	is(b.res[5], HOST_ABORTED, "the lost one is aborted by host");
	if (!strcmp(fault, "stray"))
		ok(log_order("command id 65535, which is not in flight", NULL),
		   "the stray completion is reported");
	ok(batch_resync(&b), "the queue is back");
	ok(batch_quiet(&b, 1500), "and nothing ends twice");
	ok(log_order("command id 5 timed out: abort sent", gone_of(&b), NULL) &&
	   log_lacks("resetting") && log_lacks("without an interrupt"),
	   "Abort first, then the queue, no reset");
	is(batch_generation(&b), before + 1, "it was made anew, once");
	ok(batch_data(&b), "the data of those that succeeded is right");
	ok(batch_works(&b), "the queue works");
	ok(neighbour_end(&n) && !n.aborted, "the neighbour sees no error");
	is(n.q.g.generation, 1, "on the queue it began with");
	is(ctrl_generation(), resets, "the controller was not reset");
	batch_close(&b);
}

/* The abort of one finds the time of a second over as well. */
static void lost_many(const char *node, enum way way)
{
	struct batch b;

	diag("7 of %d lost, %s, %s", BATCH_NR, node, way_names[way]);
	batch_open(&b, node, way, 0);
	log_begin();
	fault_arm("lost %d 2 7", qid_of(&b));
	batch_submit(&b);
	ok(batch_collect(&b, 60000), "every command ends once");
	is(batch_count(&b, 0), BATCH_NR - 7, "all but seven succeed");
	is(batch_count(&b, HOST_ABORTED), 7, "those are aborted by host");
	ok(batch_resync(&b) && batch_quiet(&b, 1500) && batch_works(&b),
	   "the queue works");
	ok(log_order("abort sent", gone_of(&b), NULL) &&
	   log_lacks("resetting"), "no reset");
	batch_close(&b);
}

/* An ioctl that waits for a command that is lost. */
static void lost_sync(const char *node)
{
	struct queue q = queue_open(node, O_RDWR);
	char *buf = buffer_new(PAGE);

	fault_arm("lost %d", q.g.qid);
	is(sync_rw(&q, OP_READ, 0, 1, buf), HOST_ABORTED,
	   "%s: an ioctl's lost command is aborted by host", node);
	is(sync_rw(&q, OP_READ, 0, 1, buf), 0, "and the next one succeeds");
	queue_close(&q);
	buffer_free(buf, PAGE);
}

/* ---- the owner goes while a command is lost -------------------------------- */

static int leave(void *arg)
{
	struct batch *b = arg;

	batch_open(b, b->node, b->way, 0);
	fault_arm("lost %d 3", qid_of(b));
	batch_submit(b);
	raise(SIGKILL);
	return 0;
}

static void killed_owner(const char *node, enum way way)
{
	struct batch b = { .node = node, .way = way };
	uint64_t begun = now_ms();
	int fd;

	is(in_child(leave, &b), -SIGKILL, "%s, %s: killed with a lost command",
	   node, way_names[way]);
	do {
		fd = open(node, O_RDWR | O_CLOEXEC);
	} while (fd < 0 && errno == EBUSY && now_ms() < begun + 60000);
	ok(fd >= 0, "the queue is free after %llu ms",
	   (unsigned long long)(now_ms() - begun));
	close(fd);
	batch_open(&b, node, way, 0);
	ok(batch_works(&b), "and works for the next");
	batch_close(&b);
}

/* ---- lost interrupts ------------------------------------------------------- */

static void lost_irqs_standard(const char *node)
{
	unsigned int resets = ctrl_generation(), before;
	struct batch b;

	batch_open(&b, node, WAY_STANDARD, 0);
	before = batch_generation(&b);
	log_begin();
	fault_arm("irq %d 0 1000", qid_of(&b));
	batch_submit(&b);
	ok(batch_collect(&b, 60000), "%s: no interrupt, every command ends once",
	   node);
	ok(fault_hits("irq"), "interrupts were lost");
	fault_arm("off");
	is(batch_count(&b, 0), BATCH_NR, "all with success");
	ok(batch_data(&b), "and the right data");
	ok(log_order("completions without an interrupt", NULL) &&
	   log_lacks("abort") && log_lacks("recreated") &&
	   log_lacks("resetting"), "a look at the CQ was enough");
	is(batch_generation(&b), before, "the queue is the same");
	is(ctrl_generation(), resets, "the controller was not reset");
	ok(batch_works(&b), "the queue works");
	batch_close(&b);
}

/* SUBMIT that waits for all of it, by the ioctl. */
static int submit_and_wait(struct native *n, unsigned int want)
{
	struct nvq_submit s = { .wait = want, .timeout_ms = 30000 };
	int ret = ioctl(n->q.fd, NVQ_IOC_SUBMIT, &s);

	return ret < 0 ? -errno : ret;
}

/* Submits what is staged once its caller sleeps in poll(2). */
static void *submit_later(void *arg)
{
	sleep_ms(300);
	return (void *)(intptr_t)native_submit(arg);
}

/*
 * poll(2), asleep when the completion comes: true if it says readable, and is
 * woken to do so, as it looks once more when its time is up.
 */
static bool polled(struct native *n)
{
	struct pollfd p = { .fd = n->q.fd, .events = POLLIN };
	uint64_t begun = now_ms();
	pthread_t thread;
	void *taken;
	int ret;

	pthread_create(&thread, NULL, submit_later, n);
	ret = poll(&p, 1, 20000);
	pthread_join(thread, &taken);
	return (intptr_t)taken == 1 && ret == 1 && p.revents == POLLIN &&
	       now_ms() - begun < 15000;
}

static void lost_irqs_native(const char *node)
{
	struct batch b;
	struct nvq_sqe s;
	uint64_t begun;
	int i, ret;

	batch_open(&b, node, WAY_NATIVE, 0);
	log_begin();
	fault_arm("irq %d 0 1000", qid_of(&b));
	for (i = 0; i < 4; i++) {
		s = native_rw(&b.n, OP_READ, i, i * 8, 8, b.buf_index, 0);
		native_stage(&b.n, &s);
	}
	begun = now_ms();
	ret = submit_and_wait(&b.n, 4);
	ok(ret == 4 && now_ms() - begun < 20000,
	   "%s: no interrupt, a wait for 4 ends (%d, %llu ms)", node, ret,
	   (unsigned long long)(now_ms() - begun));
	for (i = 0; i < 4; i++)
		is(native_reap(&b.n, NULL, 0), 0, "completion %d is there", i);
	native_stage(&b.n, &s);
	ok(polled(&b.n), "poll(2) says readable without an interrupt");
	is(native_reap(&b.n, NULL, 0), 0, "and it is");
	ok(fault_hits("irq"), "interrupts were lost");
	fault_arm("off");
	ok(log_lacks("abort") && log_lacks("deleted") && log_lacks("resetting"),
	   "nothing was escalated");
	ok(batch_works(&b), "the queue works");
	batch_close(&b);
}

static void lost_admin_irq(void)
{
	unsigned int resets = ctrl_generation();
	char *buf = buffer_new(PAGE);
	struct nvme_passthru_cmd c = { .opcode = 0x06, .cdw10 = 1,
		.addr = (uintptr_t)buf, .data_len = 4096 };
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC);

	log_begin();
	fault_arm("irq 0");
	is(admin_cmd(fd, &c), 0, "Identify succeeds without its interrupt");
	ok(buf[0] || buf[1], "and has its data");
	is(fault_hits("irq"), 1, "an interrupt was lost");
	ok(log_order("admin completions without an interrupt", NULL) &&
	   log_lacks("timed out"), "a look at the CQ was enough");
	is(ctrl_generation(), resets, "the controller was not reset");
	close(fd);
	buffer_free(buf, PAGE);
}

/* ---- a CQ that foreign entries fill ---------------------------------------- */

static void take(struct native *n, int buf, unsigned int first,
		 unsigned int nr, int want)
{
	struct nvq_sqe s;
	unsigned int i;
	int ret;

	for (i = first; i < first + nr; i++) {
		s = native_rw(n, OP_READ, i, i * 8, 8, buf, 0);
		native_stage(n, &s);
	}
	ret = native_submit(n);
	is(ret, want, "%u commands, SUBMIT", nr);
	native_drop(n);
}

/* Ends by id, of [0] success and [1] aborted by host; how many entries. */
static unsigned int reap_all(struct native *n, unsigned int ends[2][8])
{
	unsigned int entries = 0;
	uint16_t cid;
	int res;

	while ((res = native_reap(n, &cid, 500)) != -ETIME) {
		entries++;
		if (cid < 8 && (!res || res == HOST_ABORTED))
			ends[!!res][cid]++;
	}
	return entries;
}

/*
 * Three of seven complete under an id nobody has, and the entries are read;
 * four more complete and are not read.  Three in flight and four unread leave
 * no room for more, or their ends would run over what is unread.
 */
static void strays_fill(const char *node)
{
	struct native n = native_open(node);
	char *buf = buffer_new(8 * PAGE);
	unsigned int i, first[2][8] = { 0 }, ends[2][8] = { 0 }, wrong = 0;
	int b = native_register(n.q.fd, buf, 8 * PAGE, 0);

	is(n.q.g.depth, 8, "%s: a queue of 8", node);
	fault_arm("stray %d 0 3", n.q.g.qid);
	take(&n, b, 0, 7, 7);
	is(reap_all(&n, first), 7, "7 entries, 3 of them nobody's");
	take(&n, b, 3, 4, 4);
	sleep_ms(200);
	fault_arm("lost %d 0 3", n.q.g.qid);
	take(&n, b, 3, 3, -ENOSPC);
	for (i = 0; i < 200 && n.k->state != NVQ_STATE_RESYNC; i++)
		sleep_ms(50);
	is(reap_all(&n, ends), 7, "7 entries after recovery");
	for (i = 0; i < 8; i++)
		wrong += ends[0][i] != (i >= 3 && i < 7) ||
			 ends[1][i] != (i < 3);
	is(wrong, 0, "4 ends with success, 3 aborted by host, each once");
	fault_arm("off");
	native_close(&n);
	buffer_free(buf, 8 * PAGE);
}

int main(int argc, char **argv __attribute__((unused)))
{
	static const char *const faults[] = { "lost", "stray" };
	unsigned int i;
	enum way way;

	tap_alarm(500);
	if (argc > 1) {
		strays_fill("/dev/nvq0poll0");
		strays_fill("/dev/nvq0irq0");
		return tap_done();
	}
	for (i = 0; i < 2; i++)
		for (way = WAY_STANDARD; way <= WAY_NATIVE; way++) {
			lost_one(faults[i], "/dev/nvq0poll0", "/dev/nvq0irq1",
				 way);
			lost_one(faults[i], "/dev/nvq0irq0", "/dev/nvq0poll1",
				 way);
		}
	for (way = WAY_STANDARD; way <= WAY_NATIVE; way++) {
		lost_many("/dev/nvq0poll0", way);
		lost_many("/dev/nvq0irq0", way);
		killed_owner("/dev/nvq0poll0", way);
		killed_owner("/dev/nvq0irq0", way);
	}
	lost_sync("/dev/nvq0poll0");
	lost_sync("/dev/nvq0irq0");
	lost_irqs_standard("/dev/nvq0irq0");
	lost_irqs_native("/dev/nvq0irq0");
	lost_admin_irq();
	return tap_done();
}
