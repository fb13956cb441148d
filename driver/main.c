// SPDX-License-Identifier: GPL-2.0
/*
 * The module: parameters, init, exit.
 */
#include <linux/module.h>

#include "nvqueue.h"

unsigned int nvq_user_poll_queues = 4;
module_param_named(user_poll_queues, nvq_user_poll_queues, uint, 0644);
MODULE_PARM_DESC(user_poll_queues, "queues without interrupt, each a file /dev/nvqNpollM, per controller bound from now on (default 4)");

unsigned int nvq_user_irq_queues = 4;
module_param_named(user_irq_queues, nvq_user_irq_queues, uint, 0644);
MODULE_PARM_DESC(user_irq_queues, "queues with an interrupt vector, each a file /dev/nvqNirqM, per controller bound from now on (default 4)");

unsigned int nvq_queue_depth = 1024;
module_param_named(io_queue_depth, nvq_queue_depth, uint, 0644);
MODULE_PARM_DESC(io_queue_depth, "entries of an I/O queue, at most what the controller has (default 1024)");

unsigned int nvq_io_timeout = 30;
module_param_named(io_timeout, nvq_io_timeout, uint, 0644);
MODULE_PARM_DESC(io_timeout, "seconds until an I/O command that names no time-out is aborted (default 30)");

unsigned int nvq_admin_timeout = 60;
module_param_named(admin_timeout, nvq_admin_timeout, uint, 0644);
MODULE_PARM_DESC(admin_timeout, "seconds until an admin command that names no time-out resets the controller (default 60)");

bool nvq_use_sgl = true;
module_param_named(sgl, nvq_use_sgl, bool, 0644);
MODULE_PARM_DESC(sgl, "describe data by SGLs where the controller has them; N: by PRPs (default Y)");

struct workqueue_struct *nvq_wq;

static int __init nvq_init(void)
{
	int err;

	/* Resets free memory that others wait for. */
	nvq_wq = alloc_workqueue("nvqueue", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!nvq_wq)
		return -ENOMEM;
	err = nvq_nodes_init();
	if (err)
		goto destroy;
	err = pci_register_driver(&nvq_pci_driver);
	if (err)
		goto exit;
	return 0;
exit:
	nvq_nodes_exit();
destroy:
	destroy_workqueue(nvq_wq);
	return err;
}

static void __exit nvq_exit(void)
{
	pci_unregister_driver(&nvq_pci_driver);
	nvq_nodes_exit();
	destroy_workqueue(nvq_wq);
}

module_init(nvq_init);
module_exit(nvq_exit);
MODULE_DESCRIPTION("NVMe hardware queues as char devices");
MODULE_LICENSE("GPL");
