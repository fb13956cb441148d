/* SPDX-License-Identifier: MIT */
/*
 * nvq: what the tool's files share.
 *
 *	nvq.c		main(): options, and which command
 *	bind.c unbind.c	the commands that move a drive between drivers
 *	list.c stats.c	the commands that only look
 *	rebind.c	the steps of moving a drive, and undoing them
 *	drive.c		a drive under nvme.ko: its device nodes
 *	mounts.c holders.c procs.c	who uses it
 *	hold.c		holding it, so that nobody starts to
 *	nodes.c		a drive under nvqueue: its device nodes
 *	pci.c		names of drives
 *	sysfs.c		small files of the kernel's
 *	util.c json.c	lists of strings, messages, output
 */
#ifndef NVQ_TOOL_H
#define NVQ_TOOL_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVQ_PRINTF(fmt, args)	__attribute__((format(printf, fmt, args)))

/* Room for the name of a device, a driver, a short attribute. */
#define NAME_LEN	256
#define BDF_LEN		20

/* ---- util.c ---- */

struct strlist {
	char **str;
	size_t nr;
};

void strlist_add(struct strlist *list, const char *fmt, ...) NVQ_PRINTF(2, 3);
bool strlist_has(const struct strlist *list, const char *str);
void strlist_sort(struct strlist *list);
void strlist_free(struct strlist *list);

/* One line on standard error, "nvq: " before it. */
void complain(const char *fmt, ...) NVQ_PRINTF(1, 2);

/* "1.0 GiB", "512 B" */
const char *human_size(uint64_t bytes, char buf[16]);

void *xrealloc(void *ptr, size_t nr, size_t size);
void sleep_ms(unsigned int ms);

/* Runs a program found in $PATH; returns its exit status or -errno. */
int run(const char *const argv[]);

/* ---- sysfs.c: all paths are below sysfs_root, "" but in the tests ---- */

extern const char *sysfs_root;

bool sys_exists(const char *fmt, ...) NVQ_PRINTF(1, 2);
/* The first line, without trailing blanks.  0 or -errno, buf is then "". */
int sys_read(char *buf, size_t size, const char *fmt, ...) NVQ_PRINTF(3, 4);
/* A number; fallback if there is none. */
int64_t sys_number(int64_t fallback, const char *fmt, ...) NVQ_PRINTF(2, 3);
int sys_write(const char *value, const char *fmt, ...) NVQ_PRINTF(2, 3);
/* Last component of what a symbolic link points to. */
int sys_link(char *buf, size_t size, const char *fmt, ...) NVQ_PRINTF(3, 4);
/* Names in a directory, in natural order. */
void sys_list(struct strlist *list, const char *fmt, ...) NVQ_PRINTF(2, 3);
/* The path itself, for what the above do not do. */
void sys_path(char path[PATH_MAX], const char *fmt, ...) NVQ_PRINTF(2, 3);

/* ---- pci.c ---- */

/*
 * The address of the drive that the user named: 0000:03:00.0, 03:00.0,
 * /dev/nvme0, nvme0n1p1, /dev/nvq0poll0, a link to one of these.  Complains
 * and returns -1 if there is none.
 */
int pci_resolve(const char *name, char bdf[BDF_LEN]);
/* Addresses of all NVMe controllers. */
void pci_list(struct strlist *list);
/* Name of the driver a device is bound to, "" if to none. */
void pci_driver(const char *bdf, char driver[NAME_LEN]);

/* ---- nodes.c ---- */

/* nvqN of a drive, or -1 if it has none (yet). */
int nodes_ctrl(const char *bdf, char ctrl[NAME_LEN]);
/* nvqNpollM, nvqNirqM of nvqN. */
void nodes_queues(const char *ctrl, struct strlist *list);
/* Whether the controller of a drive is up with all its nodes. */
bool nodes_ready(const char *bdf);
/* One line for each node on standard output. */
void nodes_print(const char *bdf);

/* ---- procs.c ---- */

/* Name of a process, "?" if it is gone. */
void process_name(long pid, char name[NAME_LEN]);

/* ---- rebind.c ---- */

/*
 * Moves a drive to another driver.  First away from the one it has, an empty
 * override letting the kernel choose the next; then to the other one.  Complain;
 * 0 or -1.
 */
int rebind_start(const char *bdf, const char *override);
int rebind_finish(const char *bdf, const char *driver);
/* Back to the override and the driver that it had, "" for none. */
int rebind_undo(const char *bdf, const char *override, const char *driver);
/* What overrides the choice of a driver, "" if nothing does. */
void read_override(const char *bdf, char override[NAME_LEN]);
/* Loads a driver's module unless it is there.  Complains; 0 or -1. */
int load_driver(const char *driver);
/* Complains unless this process may bind and unbind; 0 or -1. */
int need_root(void);
/* Holds off the signals that would end us halfway; on = false delivers them. */
void hold_signals(bool on);

/* ---- the commands: argv[0] is "nvq COMMAND"; they return the exit status ---- */

int cmd_bind(int argc, char **argv);
int cmd_unbind(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_stats(int argc, char **argv);

#endif /* NVQ_TOOL_H */
