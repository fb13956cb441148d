// SPDX-License-Identifier: MIT
/*
 * A plugin for QEMU's TCG that splits what -icount counts: instructions of user
 * space and of the kernel, system calls, pauses, and the doorbell writes of
 * drivers that are modules.  At each mark (icount.h) the counters so far go to
 * QEMU's log, one line:
 *
 *	mark NUMBER user U kernel K calls C user_pauses P kernel_pauses Q doorbells D
 *
 * Needs -d plugin.  One vCPU thread is assumed (-icount has no other), and
 * x86-64 Linux: the kernel in the upper half of the addresses, its modules at the
 * upper end.
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
#define MEM_WRITES	2
#define MODULES_BEGIN	0xffffffffc0000000u

struct qemu_plugin_tb;
struct qemu_plugin_hwaddr;
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
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int cpu,
						 uint32_t info, uint64_t vaddr,
						 void *data),
				      int flags, int rw, void *data);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
const char *qemu_plugin_hwaddr_device_name(const struct qemu_plugin_hwaddr *addr);
void qemu_plugin_outs(const char *text);

EXPORT int qemu_plugin_version = 1;

/* [0]: user space, [1]: the kernel */
static uint64_t instructions[2], pauses[2], calls, doorbells;

static void on_mark(unsigned int cpu, void *data)
{
	char line[200];

	(void)cpu;
	snprintf(line, sizeof(line),
		 "mark %lu user %llu kernel %llu calls %llu user_pauses %llu kernel_pauses %llu doorbells %llu\n",
		 (unsigned long)(uintptr_t)data,
		 (unsigned long long)instructions[0],
		 (unsigned long long)instructions[1],
		 (unsigned long long)calls, (unsigned long long)pauses[0],
		 (unsigned long long)pauses[1],
		 (unsigned long long)doorbells);
	qemu_plugin_outs(line);
}

/* Once drives are up, what is written to their registers is doorbells. */
static void on_write(unsigned int cpu, uint32_t info, uint64_t vaddr, void *data)
{
	struct qemu_plugin_hwaddr *addr = qemu_plugin_get_hwaddr(info, vaddr);

	(void)cpu;
	(void)data;
	if (addr && qemu_plugin_hwaddr_is_io(addr) &&
	    !strcmp(qemu_plugin_hwaddr_device_name(addr), "nvme"))
		doorbells++;
}

/* Of a module's writel(): mov %r32, mem, whose opcode is 89 after a prefix. */
static bool may_ring(uint64_t vaddr, const unsigned char *bytes, size_t size)
{
	if (vaddr < MODULES_BEGIN || size < 2)
		return false;
	if (size > 2 && (bytes[0] & 0xf8) == 0x40)	/* REX without W */
		bytes++;
	return bytes[0] == 0x89 && bytes[1] >> 6 != 3;
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
	uint64_t vaddr = qemu_plugin_insn_vaddr(insn);
	size_t size = qemu_plugin_insn_size(insn);
	const void *bytes = qemu_plugin_insn_data(insn);
	bool kernel = vaddr >> 63;
	uint64_t nop;

	count(insn, &instructions[kernel]);
	if (size == sizeof(pause_insn) && !memcmp(bytes, pause_insn, size))
		count(insn, &pauses[kernel]);
	if (may_ring(vaddr, bytes, size))
		qemu_plugin_register_vcpu_mem_cb(insn, on_write, CB_NO_REGS,
						 MEM_WRITES, NULL);
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
