/**
 * Shapes of arrays, and receive buffers, which are allocated before data may arrive.
 *
 * <p>{@link TransferBuffers} owns extents of an arena and reuses them. The caller that took a
 * {@link TransferBuffer} holds it, and so does every registered use, until all of them have ended.
 * No threads.
 */
package io.weft.crosshost.buffer;
