// SPDX-License-Identifier: MIT
/*
 * Faults that cost the controller: a fatal status, an admin command that never
 * ends, a deletion or creation that fails, a disable that is not confirmed.
 * Every command ends once, a reset brings all queues back; where there is no
 * way back the controller is dead, says so, and can be bound again.
 *
 * The module has io_timeout=1 and admin_timeout=2.
 *
 * usage: fault_ctrl NVQ BDF [leak]	(NVQ: the tool)
 *
 * With "leak" the one fault that leaks memory on purpose, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "faulty.h"
#include "tap.h"

#define POLL_NODE	"/dev/nvq0poll0"
#define IRQ_NODE	"/dev/nvq0irq0"
#define OTHER		"/dev/nvq0irq1"

enum { ADMIN_DELETE_SQ = 0, ADMIN_CREATE_SQ, ADMIN_DELETE_CQ = 4,
	ADMIN_CREATE_CQ, ADMIN_IDENTIFY, ADMIN_ABORT = 8, ADMIN_FEATURES };

static const char *const way_names[] = { "standard", "native" };
static const char *tool, *bdf;

/* ---- a command is lost, and then something else goes wrong ----------------- */

/*
 * Submits a batch of which one is lost, so that recovery begins, with @fault
 * armed.  The controller is reset, once, for the reason @why.
 */
static void escalates(const char *node, enum way way, const char *fault,
		      const char *step, const char *why)
{
	unsigned int resets = ctrl_generation();
	struct busy_neighbour n;
	struct batch b;

	diag("%s: %s, %s", fault, node, way_names[way]);
	batch_open(&b, node, way, 0);
	neighbour_start(&n, OTHER, 4096);
	log_begin();
	fault_arm("lost %d 5", b.n.q.g.qid);
	batch_submit(&b);
	/* recovery begins a second from here at the earliest */
	fault_arm("%s", fault);
	ok(batch_collect(&b, 90000), "every command ends once");
	ok(batch_count(&b, 0) == BATCH_NR - 1 && b.res[5] == HOST_ABORTED,
	   "with the drive's status, the lost one aborted by host");
	ok(ctrl_becomes("live", 30000) && batch_resync(&b),
	   "the queue is back");
	ok(batch_quiet(&b, 1500), "nothing ends twice");
	ok(log_order(step, why, "reset done", NULL), "the steps are in order");
	is(ctrl_generation(), resets + 1, "one reset");
	ok(batch_data(&b), "the data of those that succeeded is right");
	ok(batch_works(&b), "the queue works");
	ok(neighbour_end(&n), "so does the neighbour's (%lu aborted by host)",
	   n.aborted);
	batch_close(&b);
}

static void fatal_status(const char *node, enum way way)
{
	escalates(node, way, "cfs", "resetting", "CSTS.CFS");
	ok(log_lacks("abort sent"), "without waiting for a time-out");
}

/* Unplugged, as far as the watch can tell: once is enough for a reset. */
static void does_not_answer(const char *node, enum way way)
{
	escalates(node, way, "gone", "resetting", "it does not answer");
	ok(log_lacks("abort sent"), "without waiting for a time-out");
}

/* ---- open and close -------------------------------------------------------- */

static void close_fails(const char *fault, const char *why)
{
	unsigned int resets = ctrl_generation();
	struct busy_neighbour n;
	struct batch b;

	diag("close: %s", fault);
	batch_open(&b, POLL_NODE, WAY_STANDARD, 0);
	neighbour_start(&n, OTHER, 4096);
	neighbour_goes_on(&n);
	log_begin();
	fault_arm("%s", fault);
	batch_close(&b);
	ok(log_order("resetting", why, NULL), "the controller is reset");
	ok(ctrl_becomes("live", 30000), "it is live again");
	is(ctrl_generation(), resets + 1, "one reset");
	ok(neighbour_end(&n), "the neighbour goes on (%lu aborted by host)",
	   n.aborted);
	batch_open(&b, POLL_NODE, WAY_NATIVE, 0);
	ok(batch_works(&b), "the queue opens again and works");
	batch_close(&b);
}

/* A stuck creation costs a reset, which open() waits out and tries again. */
static void open_stuck(int opcode)
{
	unsigned int resets = ctrl_generation();
	struct batch b;
	int fd;

	fault_arm("admin %d", opcode);
	fd = open(POLL_NODE, O_RDWR | O_CLOEXEC);
	ok(fd >= 0, "open succeeds though admin command 0x%02x is stuck: %s",
	   opcode, fd < 0 ? strerror(errno) : "");
	close(fd);
	ok(ctrl_becomes("live", 30000), "the controller is live");
	is(ctrl_generation(), resets + 1, "after one reset");
	batch_open(&b, POLL_NODE, WAY_STANDARD, 0);
	ok(batch_works(&b), "the queue works");
	batch_close(&b);
}

static void open_refused(void)
{
	unsigned int resets = ctrl_generation();
	struct batch b;
	int fd, err;

	fault_arm("create -1");
	fd = open(IRQ_NODE, O_RDWR | O_CLOEXEC);
	err = errno;
	ok(fd < 0 && err == EIO, "a refused creation is EIO: %s",
	   strerror(err));
	is(ctrl_generation(), resets, "and no reason to reset");
	batch_open(&b, IRQ_NODE, WAY_STANDARD, 0);
	ok(batch_works(&b), "the next open finds a queue that works");
	batch_close(&b);
}

/* ---- the administrator's command ------------------------------------------- */

static int identify(unsigned int timeout_ms)
{
	char *buf = buffer_new(PAGE);
	struct nvme_passthru_cmd c = { .opcode = ADMIN_IDENTIFY, .cdw10 = 1,
		.addr = (uintptr_t)buf, .data_len = 4096,
		.timeout_ms = timeout_ms };
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC);
	int err = admin_cmd(fd, &c);

	close(fd);
	buffer_free(buf, PAGE);
	return err;
}

static void stuck_identify(void)
{
	unsigned int resets = ctrl_generation();
	struct busy_neighbour n[2];

	neighbour_start(&n[0], POLL_NODE, 0);
	neighbour_start(&n[1], OTHER, 4096);
	neighbour_goes_on(&n[1]);
	log_begin();
	fault_arm("admin %d", ADMIN_IDENTIFY);
	is(identify(500), HOST_ABORTED, "a stuck Identify is aborted by host");
	ok(ctrl_becomes("live", 30000), "the controller is live again");
	is(ctrl_generation(), resets + 1, "after one reset");
	is(identify(0), 0, "Identify succeeds");
	ok(log_order("admin command (opcode 0x06) timed out",
		     "resetting the controller: an admin command timed out",
		     "reset done", NULL), "the steps are in order");
	ok(neighbour_end(&n[0]), "a poll queue goes on (%lu aborted by host)",
	   n[0].aborted);
	ok(neighbour_end(&n[1]), "an irq queue goes on (%lu aborted by host)",
	   n[1].aborted);
}

/* ---- a file turns native while a reset is on ------------------------------- */

static void *reset(void *arg __attribute__((unused)))
{
	return (void *)(intptr_t)
		file_write("1", "/sys/class/nvqueue/nvq0/reset_controller");
}

/*
 * The reset stands still for 2 s, after the queue was stopped: the third admin
 * command, Identify after two deletions, has no interrupt.
 */
static void native_during_reset(void)
{
	struct queue q = queue_open(IRQ_NODE, O_RDWR);
	char *buf = buffer_new(PAGE);
	pthread_t thread;
	struct native n;
	struct nvq_sqe s;
	void *err;
	int i;

	fault_arm("irq 0 2");
	pthread_create(&thread, NULL, reset, NULL);
	sleep_ms(700);
	ok(ctrl_becomes("resetting", 0) && fault_hits("irq"),
	   "a reset is on");
	n = native_attach(q);
	pthread_join(thread, &err);
	is((intptr_t)err, 0, "it succeeds");
	is(n.k->state, NVQ_STATE_LIVE,
	   "a file that turned native meanwhile is live");
	i = native_register(n.q.fd, buf, PAGE, 0);
	s = native_rw(&n, OP_READ, 1, 0, 8, i, 0);
	is(native_run(&n, &s), 0, "and works");
	native_close(&n);
	buffer_free(buf, PAGE);
}

/* ---- no way back ----------------------------------------------------------- */

static bool bound_again(void)
{
	char cmd[300];

	if (file_write(bdf, "/sys/bus/pci/drivers/nvqueue/unbind"))
		return false;
	snprintf(cmd, sizeof(cmd), "%s bind %s >/dev/null", tool, bdf);
	fflush(stdout);
	return !system(cmd);
}

/*
 * @arm, then a reset asked for by the administrator, with a native and a
 * standard command in flight: both end, the files say dead, and the drive can
 * be bound again.
 */
static void dies(const char *what, const char *arm, const char *also,
		 const char *said)
{
	struct pollfd p = { .events = POLLIN };
	struct batch b[2];
	unsigned int i;

	diag("%s", what);
	batch_open(&b[0], POLL_NODE, WAY_STANDARD, 0);
	batch_open(&b[1], IRQ_NODE, WAY_NATIVE, 1024);
	log_begin();
	for (i = 0; i < 2; i++) {
		fault_arm("lost %d 5", b[i].n.q.g.qid);
		batch_submit(&b[i]);
	}
	fault_arm("%s", arm);
	if (also)
		fault_arm("%s", also);
	is(file_write("1", "/sys/class/nvqueue/nvq0/reset_controller"),
	   -ENODEV, "the reset fails");
	ok(ctrl_becomes("dead", 60000), "the controller is dead");
	ok(log_order(said, NULL), "and the log says why");
	for (i = 0; i < 2; i++) {
		ok(batch_collect(&b[i], 30000), "%s: every command ends once",
		   b[i].node);
		is(batch_count(&b[i], -1), 0, "with success, or aborted");
		is(b[i].res[5], HOST_ABORTED, "the lost one by host");
		p.fd = b[i].n.q.fd;
		ok(poll(&p, 1, 0) == 1 && p.revents & POLLHUP, "POLLHUP");
		is(b[i].k->state, NVQ_STATE_DEAD, "the kernel page says dead");
	}
	is(sync_rw(&b[0].n.q, OP_READ, 0, 1, b[0].buf), -ENODEV,
	   "later commands are ENODEV");
	is(native_submit(&b[1].n), -ENODEV, "natively, too");
	batch_close(&b[0]);
	batch_close(&b[1]);
	ok(bound_again(), "the drive is bound again");
	batch_open(&b[0], IRQ_NODE, WAY_NATIVE, 0);
	ok(batch_works(&b[0]), "and works");
	batch_close(&b[0]);
}

/* A disable that is not confirmed costs a function level reset, no more. */
static void not_disabled(void)
{
	unsigned int resets = ctrl_generation();
	struct busy_neighbour n;

	neighbour_start(&n, IRQ_NODE, 0);
	neighbour_goes_on(&n);
	log_begin();
	fault_arm("rdy");
	is(file_write("1", "/sys/class/nvqueue/nvq0/reset_controller"), 0,
	   "a reset whose disable is not confirmed succeeds");
	ok(neighbour_end(&n), "the queue goes on (%lu aborted by host)",
	   n.aborted);
	ok(log_order("resetting", "does not confirm that it is disabled",
		     "reset done", NULL) && log_lacks("leaked"),
	   "by a function level reset");
	is(ctrl_generation(), resets + 1, "one reset");
}

static void all_escalations(void)
{
	enum way way;

	for (way = WAY_STANDARD; way <= WAY_NATIVE; way++) {
		fatal_status(POLL_NODE, way);
		fatal_status(IRQ_NODE, way);
		does_not_answer(POLL_NODE, way);
		does_not_answer(IRQ_NODE, way);
	}
	escalates(POLL_NODE, WAY_NATIVE, "admin 8", "opcode 0x08) timed out",
		  "resetting the controller: an admin command timed out");
	escalates(IRQ_NODE, WAY_STANDARD, "admin 8", "opcode 0x08) timed out",
		  "resetting the controller: an admin command timed out");
	escalates(POLL_NODE, WAY_STANDARD, "delete -1", "abort sent",
		  "a timed out queue could not be deleted");
	escalates(IRQ_NODE, WAY_NATIVE, "delete -1", "abort sent",
		  "a timed out queue could not be deleted");
	escalates(POLL_NODE, WAY_STANDARD, "admin 0", "abort sent",
		  "opcode 0x00) timed out");
	escalates(IRQ_NODE, WAY_STANDARD, "create -1", "abort sent",
		  "could not be created again");
	escalates(IRQ_NODE, WAY_STANDARD, "admin 1", "abort sent",
		  "opcode 0x01) timed out");
}

int main(int argc, char **argv)
{
	tap_alarm(900);
	if (argc < 3)
		die("usage: fault_ctrl NVQ BDF");
	tool = argv[1];
	bdf = argv[2];
	if (argc > 3) {
		dies("neither disabled nor reset", "rdy", "flr", "leaked");
		return tap_done();
	}
	all_escalations();
	close_fails("delete -1", "a queue could not be deleted");
	close_fails("admin 0", "an admin command timed out");
	close_fails("admin 4", "an admin command timed out");
	open_stuck(ADMIN_CREATE_CQ);
	open_stuck(ADMIN_CREATE_SQ);
	open_refused();
	stuck_identify();
	native_during_reset();
	not_disabled();
	dies("a fatal status that stays", "cfs -1 0 100000", NULL,
	     "while enabling");
	dies("administration stuck during bring-up", "admin 9", NULL,
	     "opcode 0x09) timed out");
	return tap_done();
}
