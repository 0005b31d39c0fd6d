/**
 * Map outputs in GPU memory, whose partitions are packed tables, and their path to another
 * executor's GPU. Tables stay on the device while there is room and are spilled otherwise.
 *
 * <p>A reader asks the owner to prepare blocks: the owner moves them to its device and keeps them
 * there under a ticket. Then the reader allocates memory and asks the owner to send. The blocks are
 * sent as arrays between the two GPUs, one batch for each request. Blocks of the own executor are
 * read in place, under a lease. A reader without a GPU, or without device memory, copies the blocks
 * to its host, table by table, without a ticket.
 *
 * <p>An executor that is decommissioned migrates its outputs over the network of the hosts, each as
 * one stream. {@code OutgoingTables} copies one table at a time to the host. {@code IncomingTables}
 * stores the tables in the arena of another executor; its tiers move them to the device later.
 *
 * <p>{@code DeviceCatalog} owns outputs until their shuffle is removed. {@code DeviceBlockServer}
 * owns tickets, which expire, and threads named "weft-device-blocks-N". {@code DeviceBlockClient}
 * owns a lane that runs its requests one after the other, because transfers between two devices
 * match by order. {@code HostReadServer} owns threads named "weft-device-reads-N".
 */
package io.weft.deviceblocks;
