/**
 * Communicators, their operations, buffers and failures, in the shape of NCCL: every rank of a
 * communicator calls the same operations in the same order on its own buffers.
 *
 * <p>Start with {@link io.weft.collectives.Communicator}, which runs operations on {@link
 * io.weft.collectives.TypedBuffer}s. A {@link io.weft.collectives.CommunicatorFactory} creates
 * communicators; {@code io.weft.collectives.host} and {@code io.weft.collectives.nccl} have
 * implementations.
 *
 * <p>A communicator runs one operation at a time; callers on several threads take turns. Buffers
 * belong to the caller, who keeps them until the operation ends. A failure names the ranks at fault
 * and reaches every rank. The creator of a communicator closes it.
 */
package io.weft.collectives;
