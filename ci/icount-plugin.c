// SPDX-License-Identifier: MIT
/*
 * A plugin for QEMU's TCG that splits what -icount counts: instructions of user
 * space and of the kernel, system calls, pauses.  At each mark (icount.h) the
 * counters so far go to QEMU's log, one line, where doorbell writes are traced
 * as well, so that what lies between two marks belongs to their window:
 *
 *	mark NUMBER user U kernel K calls C user_pauses P kernel_pauses Q
 *
 * Needs -d plugin.  One vCPU thread is assumed (-icount has no other), and the
 * x86-64 rule that the kernel has the upper half of the addresses.
 *
 * Debian packages no qemu-plugin.h: what is used of it is declared here, as of
 * version 1 of the interface (QEMU 6.0 to 8.2).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "icount.h"

#define EXPORT		__attribute__((visibility("default")))
#define CB_NO_REGS	0	/* the callback reads no registers */
#define INLINE_ADD_U64	0

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
					   void (*cb)(plugin_id id,
						      struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						int op, void *counter,
						uint64_t add);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int cpu,
						       void *data),
					    int flags, void *data);
void qemu_plugin_outs(const char *text);

EXPORT int qemu_plugin_version = 1;

/* [0]: user space, [1]: the kernel */
static uint64_t instructions[2], pauses[2], calls;

static void on_mark(unsigned int cpu, void *data)
{
	char line[200];

	(void)cpu;
	snprintf(line, sizeof(line),
		 "mark %lu user %llu kernel %llu calls %llu user_pauses %llu kernel_pauses %llu\n",
		 (unsigned long)(uintptr_t)data,
		 (unsigned long long)instructions[0],
		 (unsigned long long)instructions[1],
		 (unsigned long long)calls, (unsigned long long)pauses[0],
		 (unsigned long long)pauses[1]);
	qemu_plugin_outs(line);
}

static void count(struct qemu_plugin_insn *insn, uint64_t *counter)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, counter,
						   1);
}

/* One instruction at a time: exact also where a block is left early. */
static void translate_one(struct qemu_plugin_insn *insn)
{
	static const unsigned char syscall_insn[] = { 0x0f, 0x05 },
				   pause_insn[] = { 0xf3, 0x90 };
	bool kernel = qemu_plugin_insn_vaddr(insn) >> 63;
	size_t size = qemu_plugin_insn_size(insn);
	const void *bytes = qemu_plugin_insn_data(insn);
	uint64_t nop;

	count(insn, &instructions[kernel]);
	if (size == sizeof(pause_insn) && !memcmp(bytes, pause_insn, size))
		count(insn, &pauses[kernel]);
	if (kernel)
		return;
	if (size == sizeof(syscall_insn) && !memcmp(bytes, syscall_insn, size))
		count(insn, &calls);
	if (size != MARK_BYTES)
		return;
	memcpy(&nop, bytes, MARK_BYTES);
	if ((nop & ~((uint64_t)MARK_MAX << 32)) == mark_nop(0))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, CB_NO_REGS,
						       (void *)(uintptr_t)(nop >> 32 & MARK_MAX));
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (i = 0; i < n; i++)
		translate_one(qemu_plugin_tb_get_insn(tb, i));
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc,
			       char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
