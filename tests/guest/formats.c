// SPDX-License-Identifier: MIT
/*
 * The format of the namespace changes under its users: through the controller's
 * node with I/O running on a poll and an irq queue, and to a format that the
 * driver does not do.  Commands succeed or fail ESTALE, never anything else, and
 * no byte beside a buffer changes; who reads the geometry goes on.
 *
 * usage: formats		(QEMU's formats: 0 is 512, 4 is 4096, 1 has metadata)
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define GUARD	0xa7
#define NR	32
#define ROOM	(2 * PAGE)	/* of each buffer, its data in the middle */

enum { LBAF_512 = 0, LBAF_META = 1, LBAF_4096 = 4 };

struct user {
	const char *node;
	struct queue q;
	volatile struct nvq_kpage *k;
	char *buf;
	pthread_t thread;
	atomic_ulong good, stale;
	const char *volatile wrong;
};

static struct user users[2];
static atomic_bool stop;

static int format(unsigned int lbaf)
{
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC), err;
	struct nvme_passthru_cmd c = {
		.opcode = 0x80, .nsid = 1, .cdw10 = lbaf, .timeout_ms = 60000,
	};

	err = admin_cmd(fd, &c);
	close(fd);
	return err;
}

static int reread(struct user *u)
{
	return ioctl(u->q.fd, NVQ_IOC_GEOMETRY, &u->q.g) ? -errno : 0;
}

static char *data_of(struct user *u, unsigned int i)
{
	return u->buf + i * ROOM + PAGE - 512;
}

/* One block of 512, in a place that overruns would leave. */
static void put(struct user *u, struct io_uring *r, unsigned int i)
{
	struct nvme_uring_cmd c = rw_cmd(&u->q, OP_READ, i, 1, data_of(u, i));

	memset(u->buf + i * ROOM, GUARD, ROOM);
	ring_put(r, u->q.fd, NVME_URING_CMD_IO, &c, i);
}

static void take(struct user *u, const struct end *e)
{
	char *data = data_of(u, e->tag), *room = u->buf + e->tag * ROOM;

	if (!e->res)
		atomic_fetch_add(&u->good, 1);
	else if (e->res == -ESTALE)
		atomic_fetch_add(&u->stale, 1);
	else
		u->wrong = "a command failed otherwise";
	if (!all_bytes(room, data - room, GUARD) ||
	    !all_bytes(data + 512, room + ROOM - data - 512, GUARD))
		u->wrong = "bytes beside a buffer changed";
}

static void *load(void *arg)
{
	struct user *u = arg;
	unsigned int i, flying = 0;
	struct io_uring r;
	struct end e;

	ring_open_for(&r, NR, &u->q);
	for (; flying < NR; flying++)
		put(u, &r, flying);
	io_uring_submit(&r);
	while (flying && !u->wrong) {
		if (ring_get(&r, &e, 30000)) {
			u->wrong = "a command never ended";
			break;
		}
		take(u, &e);
		flying--;
		i = e.tag;
		if (stop)
			continue;
		put(u, &r, i);
		io_uring_submit(&r);
		flying++;
	}
	io_uring_queue_exit(&r);
	return NULL;
}

static void wait_above(atomic_ulong *n, unsigned long more)
{
	unsigned long want = atomic_load(n) + more;
	uint64_t end = now_ms() + 20000;

	while (atomic_load(n) < want && now_ms() < end)
		sleep_ms(2);
}

static void start(void)
{
	unsigned int i;

	stop = false;
	for (i = 0; i < 2; i++) {
		users[i].good = users[i].stale = 0;
		users[i].wrong = NULL;
		pthread_create(&users[i].thread, NULL, load, &users[i]);
	}
	for (i = 0; i < 2; i++)
		wait_above(&users[i].good, 100);
}

static void finish(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		wait_above(&users[i].stale, 10);
	stop = true;
	for (i = 0; i < 2; i++) {
		struct user *u = &users[i];

		pthread_join(u->thread, NULL);
		ok(!u->wrong, "%s: no byte beside a buffer changed: "
		   "%lu good, %lu stale%s%s", u->node,
		   atomic_load(&u->good), atomic_load(&u->stale),
		   u->wrong ? ", " : "", u->wrong ? u->wrong : "");
		ok(u->good >= 100 && u->stale >= 10,
		   "%s: good before, stale after", u->node);
		is(u->k->state, NVQ_STATE_STALE, "the kernel page says stale");
	}
}

/* A block as it is now, written and read. */
static bool works(struct user *u)
{
	size_t len = u->q.g.lba_size;
	char *buf = buffer_new(len);
	bool good;

	fill(buf, len, 5);
	good = !sync_rw(&u->q, OP_WRITE, 3, 1, buf);
	memset(buf, 0, len);
	good = good && !sync_rw(&u->q, OP_READ, 3, 1, buf) &&
	       differs(buf, len, 5) < 0;
	buffer_free(buf, len);
	return good;
}

static void under_load(unsigned int lbaf, unsigned int lba_size)
{
	char word[32];
	unsigned int i;

	start();
	is(format(lbaf), 0, "format to %u under I/O", lba_size);
	finish();
	for (i = 0; i < 2; i++) {
		struct user *u = &users[i];
		char *buf = buffer_new(PAGE);

		is(sync_rw(&u->q, OP_READ, 0, 1, buf), -ESTALE,
		   "%s: an ioctl is stale too", u->node);
		file_word(word, sizeof(word), "/sys/class/nvqueue/%s/state",
			  u->node + 5);
		ok(!strcmp(word, "stale"), "sysfs says stale (%s)", word);
		is(reread(u), 0, "the geometry is read");
		is(u->q.g.lba_size, lba_size, "it is the new one");
		is(u->k->state, NVQ_STATE_LIVE, "and the queue live");
		ok(works(u), "I/O with it works");
		buffer_free(buf, PAGE);
	}
}

/* Identify by passthrough is as good as the geometry. */
static void by_identify(void)
{
	struct user *u = &users[0];
	char *buf = buffer_new(PAGE);
	struct nvme_passthru_cmd c = { .opcode = 0x06, .nsid = 1,
		.addr = (uintptr_t)buf, .data_len = 4096 };

	is(format(LBAF_512), 0, "format to 512");
	is(sync_rw(&u->q, OP_READ, 0, 1, buf), -ESTALE, "stale");
	is(admin_cmd(u->q.fd, &c), 0, "Identify Namespace");
	u->q.g.lba_size = 512;
	ok(works(u), "I/O works after it");
	reread(&users[1]);
	buffer_free(buf, PAGE);
}

static void with_metadata(void)
{
	struct nvq_geometry g = { 0 };
	char *buf = buffer_new(PAGE);
	int ctrl = open("/dev/nvq0", O_RDONLY | O_CLOEXEC), fd;

	is(format(LBAF_META), 0, "format to one with metadata");
	is(sync_rw(&users[0].q, OP_READ, 0, 1, buf), -ESTALE, "stale");
	is(reread(&users[0]), -EOPNOTSUPP, "the geometry is EOPNOTSUPP");
	is(sync_rw(&users[0].q, OP_READ, 0, 1, buf), -ESTALE, "still stale");
	fd = open("/dev/nvq0poll2", O_RDWR | O_CLOEXEC);
	is(fd < 0 ? -errno : 0, -EOPNOTSUPP, "open is EOPNOTSUPP");
	is(ioctl(ctrl, NVQ_IOC_GEOMETRY, &g), 0, "the controller's geometry");
	ok(g.metadata_size, "names the metadata (%u)", g.metadata_size);
	is(format(LBAF_512), 0, "format to 512 again");
	is(reread(&users[0]), 0, "the geometry is read");
	ok(works(&users[0]), "I/O works again");
	close(ctrl);
	buffer_free(buf, PAGE);
}

/* Nothing changes: nobody goes stale. */
static void the_same(void)
{
	reread(&users[0]);
	reread(&users[1]);
	is(format(LBAF_512), 0, "format to what it is");
	ok(works(&users[0]) && works(&users[1]), "nobody is stale");
}

int main(void)
{
	static const char *const nodes[] = { "/dev/nvq0poll0",
					     "/dev/nvq0irq0" };
	unsigned int i;

	tap_alarm(150);
	for (i = 0; i < 2; i++) {
		struct user *u = &users[i];

		u->node = nodes[i];
		u->q = queue_open(u->node, O_RDWR);
		u->k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, u->q.fd,
			    NVQ_MMAP_KPAGE);
		u->buf = buffer_new(NR * ROOM);
	}
	is(users[0].q.g.lba_size, 512, "512 at first");
	under_load(LBAF_4096, 4096);
	by_identify();
	under_load(LBAF_4096, 4096);
	is(format(LBAF_512), 0, "and back");
	the_same();
	with_metadata();
	return tap_done();
}
