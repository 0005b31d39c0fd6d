/**
 * Communicators and what runs on them, in the shape of NCCL: every rank of a communicator calls the
 * same operations in the same order on buffers of its own.
 *
 * <p>Implementations live below: {@code local} (threads of one process, the plain reference),
 * {@code host} (shared memory and sockets) and {@code nccl} (GPUs). A communicator runs one
 * operation at a time; callers on several threads take turns. Buffers belong to the caller, who
 * keeps them until the operation ends. Whoever creates a communicator closes it.
 */
package io.weft.collectives;
