// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs that are refused, and I/O that failed: what fio gets to know, and one
 * line for each reason or kind of failure, however often it happens.
 */
#include <stdarg.h>

#include <fio.h>

#include "nvqueue.h"

void nvqueue_refuse(struct thread_data *td, int err, const char *fmt, ...)
{
	static __thread char last[512];
	char text[512];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "nvqueue: %s: ", td->o.name);
	if (n < 0 || (size_t)n >= sizeof(text))
		n = 0;
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	if (strcmp(text, last))
		log_err("%s\n", text);
	strcpy(last, text);
	td_verror(td, err, "nvqueue");
}

/*
 * fio's io_uring_cmd engine hands the NVMe status (a res above 0) and the errno
 * (below) to fio as one positive number, so that ignore_error= can name
 * either; from fio 3.38 on a flag tells them apart.  (Up to fio 3.35 it gave
 * the status negative, which no ignore_error= can match.)
 */
static void tell_fio(struct thread_data *td, struct io_u *io_u, int res)
{
	io_u->error = res > 0 ? res : -res;
#if FIO_IOOPS_VERSION >= 36
	if (res > 0)
		io_u_set(td, io_u, IO_U_F_DEVICE_ERROR);
	else
		io_u_clear(td, io_u, IO_U_F_DEVICE_ERROR);
#else
	(void)td;
#endif
}

static unsigned int opcode_of(const struct io_u *io_u)
{
	switch (io_u->ddir) {
	case DDIR_READ:
		return NVQ_READ;
	case DDIR_WRITE:
		return NVQ_WRITE;
	case DDIR_TRIM:
		return NVQ_DSM;
	default:
		return NVQ_FLUSH;
	}
}

static struct nvqueue_failure *find_kind(struct nvqueue_job *job,
					 unsigned int opcode, int res)
{
	unsigned int i;

	for (i = 0; i < job->nr_failures; i++)
		if (job->failures[i].opcode == opcode &&
		    job->failures[i].res == res)
			return &job->failures[i];
	if (i == NVQUEUE_MAX_FAILURES)
		return NULL; /* enough has been said */
	job->failures[i].opcode = opcode;
	job->failures[i].res = res;
	job->nr_failures++;
	return &job->failures[i];
}

static const char *why(int res, char *buf, size_t len)
{
	size_t n;

	nvq_status_text(res, buf, len);
	n = strlen(buf);
	/* the job's sizes are those that fio began with */
	if (res == -ESTALE)
		snprintf(buf + n, len - n,
			 ": the namespace was formatted, resized or detached, start again");
	return buf;
}

void nvqueue_failed(struct thread_data *td, struct io_u *io_u, int res)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvqueue_file *nf = FILE_ENG_DATA(io_u->file);
	struct nvqueue_failure *fail;
	unsigned int shift = nf->q.lba_shift;
	char text[160];

	tell_fio(td, io_u, res);
	fail = find_kind(job, opcode_of(io_u), res);
	if (!fail || fail->count++)
		return;
	why(res, text, sizeof(text));
	if (!ddir_rw(io_u->ddir))
		log_err("nvqueue: %s: %s: %s failed: %s\n", td->o.name,
			nf->q.name, nvq_opcode_name(fail->opcode), text);
	else
		log_err("nvqueue: %s: %s: %s of %llu LBAs at LBA %llu failed: %s\n",
			td->o.name, nf->q.name, nvq_opcode_name(fail->opcode),
			io_u->xfer_buflen >> shift, io_u->offset >> shift,
			text);
}

/*
 * Within queue().  fio has noted a write before it hands it over, to verify it later;
 * of one that ends there with an error it keeps the note, as of one in flight, and
 * would verify nothing from there on, without a word.
 */
enum fio_q_status nvqueue_failed_at_once(struct thread_data *td,
					 struct io_u *io_u, int res)
{
	nvqueue_failed(td, io_u, res);
	if (io_u->ipo)
		unlog_io_piece(td, io_u);
	return FIO_Q_COMPLETED;
}

void nvqueue_sum_up_failures(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;
	char text[160];

	for (i = 0; i < job->nr_failures; i++) {
		struct nvqueue_failure *fail = &job->failures[i];

		if (fail->count < 2)
			continue;
		log_err("nvqueue: %s: %llu %s commands failed: %s\n",
			td->o.name, (unsigned long long)fail->count,
			nvq_opcode_name(fail->opcode),
			why(fail->res, text, sizeof(text)));
	}
}
