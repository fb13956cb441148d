/* SPDX-License-Identifier: MIT */
/*
 * What the guest test programs share: queue files, rings on them, commands and
 * data that can be told apart.  Straight to the kernel's interface, without
 * libnvq, so that a test can say what the library never would.
 *
 * Nothing here prints but what fails in the test's own doing (die()).
 */
#ifndef NVQ_TESTS_QUEUE_H
#define NVQ_TESTS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <liburing.h>
#include <linux/nvme_ioctl.h>
#include <nvqueue/uapi.h>

#define PAGE		4096UL

enum {
	OP_FLUSH	= 0x00,
	OP_WRITE	= 0x01,
	OP_READ		= 0x02,
	OP_COMPARE	= 0x05,
	OP_ZEROES	= 0x08,
	OP_DSM		= 0x09,
	OP_VERIFY	= 0x0c,
	OP_COPY		= 0x19,
};

struct queue {
	int fd;
	struct nvq_geometry g;
};

/* An end that came back: res, and what the drive says in its CQE. */
struct end {
	uint64_t tag;
	int res;
	uint64_t result;
};

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Opens or dies; the geometry is read. */
struct queue queue_open(const char *path, int flags);
struct queue queue_open_as_is(const char *path, int flags);
void queue_close(struct queue *q);
bool is_poll(const struct queue *q);

/* Bytes that name their place; page-aligned, between two inaccessible pages. */
void *buffer_new(size_t len);
void buffer_free(void *buf, size_t len);
void fill(void *buf, size_t len, uint64_t seed);
/* The offset of the first byte that is not what fill() wrote, or -1. */
long differs(const void *buf, size_t len, uint64_t seed);
bool all_bytes(const void *buf, size_t len, uint8_t value);
uint64_t random64(uint64_t *state);
unsigned int random_below(uint64_t *state, unsigned int n);

/* Commands. */
struct nvme_uring_cmd rw_cmd(const struct queue *q, uint8_t op, uint64_t slba,
			     unsigned int nlb, void *buf);
struct nvme_passthru_cmd64 sync_form(const struct nvme_uring_cmd *c);
/* ioctl(): an NVMe status > 0, 0, or a negative errno. */
int sync_cmd(int fd, const struct nvme_uring_cmd *c, uint64_t *result);
int sync_rw(const struct queue *q, uint8_t op, uint64_t slba, unsigned int nlb,
	    void *buf);
int admin_cmd(int fd, struct nvme_passthru_cmd *c);

/* Rings.  SQE128 and CQE32 unless told otherwise by ring_open_raw(). */
void ring_open(struct io_uring *r, unsigned int entries, unsigned int flags);
int ring_open_raw(struct io_uring *r, unsigned int entries, unsigned int flags);
/* For @q: IOPOLL on a poll queue. */
void ring_open_for(struct io_uring *r, unsigned int entries,
		   const struct queue *q);
struct io_uring_sqe *ring_put(struct io_uring *r, int fd, uint32_t cmd_op,
			      const struct nvme_uring_cmd *c, uint64_t tag);
/* 0, or -ETIME after @ms. */
int ring_get(struct io_uring *r, struct end *e, unsigned int ms);
/* One command, there and back. */
struct end ring_run(struct io_uring *r, int fd, uint32_t cmd_op,
		    const struct nvme_uring_cmd *c);

/* Processes, files, time. */
uint64_t now_ms(void);
void sleep_ms(unsigned int ms);
long long file_number(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
void file_word(char *out, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* 0 or -errno. */
int file_write(const char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* In a child: nobody's rights.  Dies if root keeps any. */
void drop_rights(void);
/* Runs @fn in a child; its return value, or minus the signal that ended it. */
int in_child(int (*fn)(void *), void *arg);

#endif
