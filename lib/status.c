// SPDX-License-Identifier: MIT
/*
 * NVMe status codes and opcodes in words (NVMe Base Spec 2.0, 3.3.3.2.1, and
 * NVM Command Set Spec 1.0, 3.1): what an I/O command can end with.
 *
 * A table of its own rather than libnvme's nvme_status_to_string(), as that
 * would bring libcrypto, libdbus and libjson-c into every program that does
 * I/O; a unit test holds the table against libnvme's.
 */
#include <stdio.h>
#include <string.h>

#include "internal.h"

struct code_name {
	unsigned short code;	/* type << 8 | code */
	const char *name;
};

static const struct code_name status_names[] = {
	{ 0x000, "Successful Completion" },
	{ 0x001, "Invalid Command Opcode" },
	{ 0x002, "Invalid Field in Command" },
	{ 0x003, "Command ID Conflict" },
	{ 0x004, "Data Transfer Error" },
	{ 0x005, "Commands Aborted due to Power Loss Notification" },
	{ 0x006, "Internal Error" },
	{ 0x007, "Command Abort Requested" },
	{ 0x008, "Command Aborted due to SQ Deletion" },
	{ 0x009, "Command Aborted due to Failed Fused Command" },
	{ 0x00a, "Command Aborted due to Missing Fused Command" },
	{ 0x00b, "Invalid Namespace or Format" },
	{ 0x00c, "Command Sequence Error" },
	{ 0x00d, "Invalid SGL Segment Descriptor" },
	{ 0x00e, "Invalid Number of SGL Descriptors" },
	{ 0x00f, "Data SGL Length Invalid" },
	{ 0x010, "Metadata SGL Length Invalid" },
	{ 0x011, "SGL Descriptor Type Invalid" },
	{ 0x012, "Invalid Use of Controller Memory Buffer" },
	{ 0x013, "PRP Offset Invalid" },
	{ 0x014, "Atomic Write Unit Exceeded" },
	{ 0x015, "Operation Denied" },
	{ 0x016, "SGL Offset Invalid" },
	{ 0x01c, "Sanitize Failed" },
	{ 0x01d, "Sanitize In Progress" },
	{ 0x01e, "SGL Data Block Granularity Invalid" },
	{ 0x020, "Namespace is Write Protected" },
	{ 0x021, "Command Interrupted" },
	{ 0x022, "Transient Transport Error" },
	{ 0x080, "LBA Out of Range" },
	{ 0x081, "Capacity Exceeded" },
	{ 0x082, "Namespace Not Ready" },
	{ 0x083, "Reservation Conflict" },
	{ 0x084, "Format In Progress" },
	{ 0x180, "Conflicting Attributes" },
	{ 0x181, "Invalid Protection Information" },
	{ 0x182, "Attempted Write to Read Only Range" },
	{ 0x183, "Command Size Limit Exceeded" },
	{ 0x1b8, "Zone Boundary Error" },
	{ 0x1b9, "Zone Is Full" },
	{ 0x1ba, "Zone Is Read Only" },
	{ 0x1bb, "Zone Is Offline" },
	{ 0x1bc, "Zone Invalid Write" },
	{ 0x1bd, "Too Many Active Zones" },
	{ 0x1be, "Too Many Open Zones" },
	{ 0x1bf, "Invalid Zone State Transition" },
	{ 0x280, "Write Fault" },
	{ 0x281, "Unrecovered Read Error" },
	{ 0x282, "End-to-end Guard Check Error" },
	{ 0x283, "End-to-end Application Tag Check Error" },
	{ 0x284, "End-to-end Reference Tag Check Error" },
	{ 0x285, "Compare Failure" },
	{ 0x286, "Access Denied" },
	{ 0x287, "Deallocated or Unwritten Logical Block" },
	{ 0x300, "Internal Path Error" },
	{ 0x301, "Asymmetric Access Persistent Loss" },
	{ 0x302, "Asymmetric Access Inaccessible" },
	{ 0x303, "Asymmetric Access Transition" },
	{ 0x360, "Controller Pathing Error" },
	{ 0x370, "Host Pathing Error" },
	{ 0x371, "Command Aborted By Host" },
};

static const struct code_name opcode_names[] = {
	{ 0x00, "flush" },
	{ 0x01, "write" },
	{ 0x02, "read" },
	{ 0x04, "write uncorrectable" },
	{ 0x05, "compare" },
	{ 0x08, "write zeroes" },
	{ 0x09, "deallocate" },
	{ 0x0c, "verify" },
	{ 0x19, "copy" },
	{ 0x79, "zone management send" },
	{ 0x7a, "zone management receive" },
	{ 0x7d, "zone append" },
};

static const char *const type_names[8] = {
	"generic", "command specific", "media and data integrity",
	"path related", "reserved", "reserved", "reserved", "vendor specific",
};

static const char *find_name(const struct code_name *table, size_t nr,
			     unsigned int code, const char *otherwise)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (table[i].code == code)
			return table[i].name;
	return otherwise;
}

const char *nvq_status_name(int status)
{
	return find_name(status_names,
			 sizeof(status_names) / sizeof(status_names[0]),
			 status & 0x7ff, "unknown status");
}

const char *nvq_opcode_name(unsigned int opcode)
{
	return find_name(opcode_names,
			 sizeof(opcode_names) / sizeof(opcode_names[0]), opcode,
			 "opcode");
}

#define STATUS_DNR	0x4000

const char *nvq_status_text(int res, char *buf, size_t len)
{
	if (res < 0)
		snprintf(buf, len, "%s (errno %d)", strerror(-res), -res);
	else if (!res)
		snprintf(buf, len, "success");
	else
		snprintf(buf, len,
			 "NVMe status 0x%04x: type %u (%s), code 0x%02x (%s)%s",
			 res, nvq_status_type(res),
			 type_names[nvq_status_type(res)], nvq_status_code(res),
			 nvq_status_name(res),
			 res & STATUS_DNR ? ", do not retry" : "");
	return buf;
}
