// SPDX-License-Identifier: MIT
/*
 * The hostile process: see hostile.h.  This part runs its epochs one after the
 * other, resets the controller and formats the namespace under them, takes the
 * drive away in the end, and says what came of it.
 *
 *	hostile NODE NEIGHBOUR BDF NVQ SEED OPERATIONS SECONDS [THREADS [EPOCH]]
 *
 * NODE is the queue file that is given away, NEIGHBOUR another of the same
 * drive, BDF the drive's address, NVQ the tool.  After SECONDS no epoch begins, but
 * for a fifth of the operations and one epoch of each mode; all of them are done
 * where NVQ_FULL is set.  With EPOCH it is that epoch alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "tap.h"

#define NOBODY		65534
#define EPOCH_OPS	600	/* of each thread */
#define CYCLE		10	/* epochs, all modes in them */
#define FLOOR_MIB	2	/* that the neighbour verifies at least */
#define RESET		"/sys/class/nvqueue/nvq0/reset_controller"

struct epoch epoch;

static const char *bdf, *tool;
static struct op all_ops[MAX_OPS];
static unsigned int nr_all_ops;

/* ---- the table of operations ---------------------------------------------------- */

static void add_ops(const struct op *ops)
{
	for (; ops->name; ops++) {
		if (nr_all_ops == MAX_OPS)
			die("more than %u operations", MAX_OPS);
		all_ops[nr_all_ops++] = *ops;
	}
}

static unsigned int pick_op(struct thread *t)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < nr_all_ops; i++)
		sum += all_ops[i].weight[epoch.mode];
	at = below(t, sum);
	for (i = 0; at >= all_ops[i].weight[epoch.mode]; i++)
		at -= all_ops[i].weight[epoch.mode];
	return i;
}

/* ---- a thread --------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t state = a ^ b * 0x9e3779b97f4a7c15ULL;

	return random64(&state);
}

static atomic_uint finished;

static void *work(void *arg)
{
	struct thread *t = arg;
	uint64_t begun;
	unsigned int i;

	for (; t->index < epoch.nr_ops; t->index++) {
		t->rnd = mix(mix(epoch.seed, t->id), t->index);
		i = pick_op(t);
		begun = now_ms();
		all_ops[i].fn(t);
		shared->ms[i] += now_ms() - begun;
		shared->ops[i]++;
		shared->total++;
		/* the thread dies, another takes over */
		if (one_in(t, 200)) {
			struct thread *next = malloc(sizeof(*next));

			*next = *t;
			next->index++;
			if (!pthread_create(&t->all[t->id], NULL, work, next))
				return NULL;
			free(next);
		}
	}
	finished++;
	return NULL;
}

/* Nobody is joined before all are done: they send each other signals. */
static void run_threads(void)
{
	static struct thread threads[MAX_THREADS];
	static pthread_t all[MAX_THREADS];
	unsigned int i;

	for (i = 0; i < epoch.nr_threads; i++) {
		threads[i] = (struct thread){ .id = i, .all = all };
		all[i] = pthread_self();
	}
	for (i = 0; i < epoch.nr_threads; i++)
		pthread_create(&all[i], NULL, work, &threads[i]);
	while (finished < epoch.nr_threads)
		sleep_ms(2);
	for (i = 0; i < epoch.nr_threads; i++)
		pthread_join(all[i], NULL);
}

/* ---- an epoch, in the process without rights ----------------------------------------- */

static void nothing(int sig)
{
	(void)sig;
}

/* The previous owner may take a moment. */
static void epoch_open(void)
{
	bool ro = epoch.mode == NATIVE_RO || epoch.mode == STANDARD_RO;
	uint64_t end = now_ms() + 60000;
	int fd;

	do {
		fd = open(epoch.node, (ro ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	} while (fd < 0 && errno == EBUSY && now_ms() < end);
	if (fd < 0)
		die("%s cannot be opened: %s", epoch.node, strerror(errno));
	epoch.n.q.fd = fd;
	if (note(C_GEOMETRY, ioctl(fd, NVQ_IOC_GEOMETRY, &epoch.n.q.g) ?
		 -errno : 0))
		die("no geometry: %s", strerror(errno));
}

/* Before any command; once there was one, it is EBUSY. */
static void epoch_select(void)
{
	uint32_t nsid = NS_OURS;

	if (note(C_SELECT_NS, ioctl(epoch.n.q.fd, NVQ_IOC_SELECT_NS, &nsid) ?
		 -errno : 0))
		wrong(NULL, "our namespace cannot be selected");
}

static void epoch_map(void)
{
	struct native *n = &epoch.n;

	if (epoch.mode == NATIVE) {
		*n = native_attach(n->q);
		return;
	}
	n->phase = 1;
	n->cq = mmap(NULL, n->q.g.cq_bytes, PROT_READ, MAP_SHARED, n->q.fd,
		     NVQ_MMAP_CQ);
	n->k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, n->q.fd,
		    NVQ_MMAP_KPAGE);
	if (n->cq == MAP_FAILED || n->k == MAP_FAILED)
		die("the CQ or the kernel page cannot be mapped: %s",
		    strerror(errno));
}

static void epoch_begin(void)
{
	struct rlimit limit = { 20 << 20, 20 << 20 };
	struct sigaction sa = { .sa_handler = nothing };

	setrlimit(RLIMIT_MEMLOCK, &limit);
	drop_rights();
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGIO, &sa, NULL);
	pthread_mutex_init(&epoch.lock, NULL);
	epoch.rw = buffer_new(RW_LEN);
	epoch.ro = buffer_new(RO_LEN);
	epoch.scratch = buffer_new(SCRATCH_LEN);
	fill(epoch.ro, RO_LEN, RO_SEED);
	epoch_open();
	epoch_select();
	epoch_map();
	epoch.rw_index = epoch.ro_index = -1;
	if (is_native())
		native_begin();
}

static void burst(struct thread *t)
{
	if (is_native())
		native_burst(t);
	else
		standard_burst(t);
}

static int epoch_child(void *arg)
{
	struct thread t = { .rnd = epoch.seed };

	(void)arg;
	epoch_begin();
	if (epoch.number % CYCLE == 6)
		native_for_certain(&t);
	shared->ready = true;
	run_threads();
	if (is_native() && epoch.ending != END_EXIT)
		native_settled(&t);
	if (epoch.ending != END_CLOSE)
		burst(&t);
	switch (epoch.ending) {
	case END_KILL:
		pause();
		break;
	case END_UNMAP:
		buffer_free(epoch.rw, RW_LEN);
		buffer_free(epoch.scratch, SCRATCH_LEN);
		close(epoch.n.q.fd);
		munmap((void *)epoch.n.cq, epoch.n.q.g.cq_bytes);
		break;
	default:
		break;
	}
	_exit(0);
}

/* ---- an epoch, from above ------------------------------------------------------------- */

static void choose_epoch(uint64_t seed, unsigned int number, unsigned int threads)
{
	static const enum mode modes[CYCLE] = {
		NATIVE, STANDARD, NATIVE, UNDECIDED, NATIVE_RO,
		STANDARD, NATIVE, STANDARD_RO, NATIVE, STANDARD,
	};
	const char *node = epoch.node;

	memset(&epoch, 0, sizeof(epoch));
	epoch.node = node;
	epoch.number = number;
	epoch.seed = mix(seed, number);
	epoch.nr_threads = threads;
	epoch.nr_ops = EPOCH_OPS;
	epoch.mode = modes[number % CYCLE];
	epoch.racy = number % 4 == 2;
	epoch.ending = (number + number / 4) % NR_ENDINGS;
	epoch.formats = number % CYCLE == 5 || number % 20 == 18;
}

static int format(unsigned int nsid, unsigned int lbaf)
{
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC), err;
	struct nvme_passthru_cmd c = {
		.opcode = 0x80, .nsid = nsid, .cdw10 = lbaf,
		.timeout_ms = 60000,
	};

	err = admin_cmd(fd, &c);
	close(fd);
	return err;
}

static void stacks(pid_t pid)
{
	char line[128];

	snprintf(line, sizeof(line), "cat /proc/%d/task/*/stack | sed 's/^/# /'",
		 pid);
	fflush(stdout);
	if (system(line))
		diag("no stacks");
}

/* True if it is over; it must be within @ms. */
static bool gone(pid_t pid, int *status, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	do {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		sleep_ms(5);
	} while (now_ms() < end);
	return false;
}

/* What happens to the drive meanwhile, until the process has gone. */
static bool disturb(pid_t pid, int *status, uint64_t *rnd)
{
	unsigned int resets = epoch.number % 2 || !(epoch.number % CYCLE) ? 0 : 4;
	bool over;
	int err;

	if (epoch.formats) {
		over = gone(pid, status, random_below(rnd, 200));
		err = format(NS_OURS, 4);
		if (err)
			wrong(NULL, "the format ended with %d", err);
		return over;
	}
	while (resets--) {
		if (gone(pid, status, 20 + random_below(rnd, 500)))
			return true;
		err = file_write("1", RESET);
		if (err)
			wrong(NULL, "the reset ended with %d", err);
	}
	return false;
}

static bool unbind(void)
{
	return !file_write(bdf, "/sys/bus/pci/drivers/nvqueue/unbind");
}

static void take_away(void)
{
	sleep_ms(300);
	shared->dead = true;
	if (!unbind())
		wrong(NULL, "the drive cannot be unbound");
}

static void end_epoch(pid_t pid, bool over, int status, uint64_t *rnd)
{
	unsigned int patience = 240000 * tap_env("NVQ_SLOW", 1);
	bool killed = false;

	if (epoch.ending == END_KILL && !over) {
		over = gone(pid, &status, 100 + random_below(rnd, 1500));
		if (!over)
			kill(pid, SIGKILL);
		killed = true;
	}
	if (!over && !gone(pid, &status, patience)) {
		wrong(NULL, "it does not end");
		stacks(pid);
		kill(pid, SIGKILL);
		killed = true;
		if (!gone(pid, &status, patience))
			bail("epoch %u cannot be killed", epoch.number);
	}
	if (WIFSIGNALED(status) ? !killed || WTERMSIG(status) != SIGKILL :
				  WEXITSTATUS(status) != 0)
		wrong(NULL, "it ended with status 0x%x", status);
}

static void run_epoch(bool removal)
{
	uint64_t rnd = ~epoch.seed, begun = now_ms();
	bool over = false;
	int status = 0;
	pid_t pid;

	shared->ready = false;
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(epoch_child(NULL));
	while (!shared->ready && now_ms() < begun + 60000) {
		if (atomic_exchange(&shared->want_reset, false) &&
		    file_write("1", RESET))
			wrong(NULL, "no reset");
		sleep_ms(2);
	}
	if (removal)
		take_away();
	else
		over = disturb(pid, &status, &rnd);
	end_epoch(pid, over, status, &rnd);
	if (tap_env("HOSTILE_VERBOSE", 0))
		diag("epoch %u, mode %u, ending %u: %lu operations, %u wrong, %llu ms",
		     epoch.number, epoch.mode, epoch.ending, shared->total,
		     shared->wrong, (unsigned long long)(now_ms() - begun));
	if (epoch.formats && !removal && format(NS_OURS, 0))
		wrong(NULL, "the namespace cannot be formatted back");
}

/* ---- all of it ------------------------------------------------------------------------- */

/* The node is nobody's from here; the others stay root's. */
static void give_away(void)
{
	if (chown(epoch.node, NOBODY, NOBODY) || chmod(epoch.node, 0600))
		die("%s cannot be given away: %s", epoch.node, strerror(errno));
}

static pid_t start_neighbour(const char *node)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(neighbour_run(node));
	return pid;
}

static void end_neighbour(pid_t pid)
{
	unsigned long mib;
	int status = -1;

	shared->nb.stop = true;
	if (!gone(pid, &status, 60000 * tap_env("NVQ_SLOW", 1))) {
		stacks(pid);
		kill(pid, SIGKILL);
	}
	mib = shared->nb.verified >> 20;
	diag("neighbour: %lu KiB written, %lu KiB verified, %lu commands aborted",
	     shared->nb.written >> 10, shared->nb.verified >> 10,
	     shared->nb.aborted);
	is(status, 0, "the neighbour ends");
	ok(mib >= FLOOR_MIB, "the neighbour verified %u MiB and more",
	   FLOOR_MIB);
}

/*
 * io_uring lets go of the last file some time after its process, and as long as it
 * has not, the drive that was taken away is still nvq0, and the new one is not.
 */
static bool bound_again(void)
{
	uint64_t end = now_ms() + 30000;
	char line[512];

	snprintf(line, sizeof(line), "%s bind %s >/dev/null", tool, bdf);
	while (!system(line)) {
		if (!access(epoch.node, F_OK)) {
			shared->dead = false;
			give_away();
			return true;
		}
		if (now_ms() > end || !unbind())
			break;
		sleep_ms(200);
	}
	return false;
}

/* A native and a standard owner lose their drive. */
static void removals(uint64_t seed, unsigned int threads)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		choose_epoch(seed, 1000000 + i, threads);
		epoch.mode = i ? STANDARD : NATIVE;
		epoch.ending = END_CLOSE;
		epoch.racy = epoch.formats = false;
		run_epoch(true);
		ok(bound_again(), "the drive is bound again");
	}
}

static void print_ops(void)
{
	unsigned int i;

	for (i = 0; i < nr_all_ops; i++)
		diag("%-20s %8lu in %8lu ms", all_ops[i].name, shared->ops[i],
		     shared->ms[i]);
}

static void verdict(uint64_t seed, unsigned long count, unsigned long floor)
{
	struct queue q = queue_open(epoch.node, O_RDWR);

	print_ops();
	report();
	diag("hostile: %lu rounds of %lu (floor %lu), seed %llu",
	     shared->total, count, floor, (unsigned long long)seed);
	ok(shared->total >= floor, "%lu operations and more", floor);
	is(shared->wrong, 0, "nothing is otherwise than uapi.h says");
	ok(shared->staged && shared->taken * 10 >= shared->staged * 3,
	   "%lu of %lu staged commands reach the device, 30 %% at least",
	   shared->taken, shared->staged);
	is(never_met(is_poll(&q)), 0, "every rejection of uapi.h is met");
	queue_close(&q);
}

int main(int argc, char **argv)
{
	unsigned long count, floor;
	unsigned int i, threads = 4, first = 0, last = ~0u;
	uint64_t seed, end;
	pid_t neighbour;

	if (argc < 8)
		die("usage: hostile NODE NEIGHBOUR BDF NVQ SEED OPERATIONS SECONDS [THREADS [EPOCH]]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	epoch.node = argv[1];
	bdf = argv[3];
	tool = argv[4];
	seed = strtoull(argv[5], NULL, 0);
	count = strtoul(argv[6], NULL, 0);
	floor = tap_env("NVQ_FULL", 0) ? count : count / 5;
	end = now_ms() + strtoul(argv[7], NULL, 0) * 1000;
	if (argc > 8)
		threads = atoi(argv[8]);
	if (argc > 9)
		first = last = atoi(argv[9]);
	if (!threads || threads > MAX_THREADS)
		die("1 to %u threads", MAX_THREADS);
	add_ops(file_ops);
	add_ops(native_ops);
	add_ops(standard_ops);
	diag("seed %llu, %u threads", (unsigned long long)seed, threads);
	is(format(NS_METADATA, 1), 0, "a namespace with metadata");
	give_away();
	neighbour = start_neighbour(argv[2]);
	for (i = first; i <= last; i++) {
		bool late = !tap_env("NVQ_FULL", 0) && now_ms() > end;

		if (i >= first + CYCLE && shared->total >= (late ? floor : count))
			break;
		choose_epoch(seed, i, threads);
		run_epoch(false);
	}
	end_neighbour(neighbour);
	if (last == ~0u)
		removals(seed, threads);
	verdict(seed, count, floor);
	return tap_done();
}
