/**
 * Communicators and their operations, in the shape of NCCL: every rank of a communicator calls the
 * same operations in the same order on its own buffers.
 *
 * <p>The implementations are {@code local} (threads of one process, the reference), {@code host}
 * (shared memory and sockets) and {@code nccl} (GPUs). A communicator runs one operation at a time;
 * callers on several threads take turns. Buffers belong to the caller, who keeps them until the
 * operation ends. The creator of a communicator closes it.
 */
package io.weft.collectives;
