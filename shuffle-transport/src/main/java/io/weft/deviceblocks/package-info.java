/**
 * Blocks in memory of GPUs: map outputs whose partitions are packed tables of a device, kept while
 * there is room and spilled while there is not, and their way into memory of another executor's
 * GPU.
 *
 * <p>A reader asks the executor that has the blocks to make them ready, which brings them to its
 * device and keeps them there under a ticket; then it takes memory for them, says so, and they are
 * sent as arrays between the two GPUs: one batch for all that is asked for at a time. Blocks of its
 * own executor it reads where they lie, under a lease. A reader without a GPU, or without the room,
 * has them copied to its host, table by table, without a ticket.
 *
 * <p>An output of an executor that is about to end moves as one stream of bytes over the network of
 * the hosts: {@code OutgoingTables} copies one table at a time to the host, {@code IncomingTables}
 * takes them into the arena of an executor that lives on, from where its tiers bring them to its
 * device.
 *
 * <p>{@code DeviceCatalog} owns outputs until their shuffle is removed; {@code DeviceBlockServer}
 * owns tickets, which end by themselves, and threads named "weft-device-blocks-N"; {@code
 * DeviceBlockClient} owns a lane, on which requests go one after the other, as arrays between two
 * devices match in their order. {@code HostReadServer} owns threads named "weft-device-reads-N".
 */
package io.weft.deviceblocks;
