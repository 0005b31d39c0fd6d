/**
 * Map outputs in GPU memory, whose partitions are packed tables, and their path to another
 * executor. Start with {@link io.weft.shuffle.device.DeviceCatalog}, which owns the outputs of this
 * executor; with {@link io.weft.shuffle.device.DeviceBlockClient} and {@link
 * io.weft.shuffle.device.DeviceBlockServer}, which move blocks between GPUs; and with {@link
 * io.weft.shuffle.device.HostReadClient}, which copies blocks to host memory.
 *
 * <p>A reader asks the owner to prepare blocks: the owner moves them to its device and keeps them
 * there under a ticket. Then the reader allocates memory and asks the owner to send. The blocks are
 * sent as arrays between the two GPUs, one batch for each request. Blocks of the own executor are
 * read in place, under a lease. An output of an executor that is decommissioned migrates as one
 * stream over the network of the hosts.
 *
 * <p>Tickets expire. The servers own threads "weft-device-blocks-N" and "weft-device-reads-N". The
 * client owns a lane that runs its requests one after the other, because transfers between two
 * devices match by order.
 */
package io.weft.shuffle.device;
