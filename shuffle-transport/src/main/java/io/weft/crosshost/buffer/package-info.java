/**
 * What transfers read into: shapes, and the buffers that are there before any data may arrive.
 *
 * <p>{@link TransferBuffers} owns extents of an arena and uses them again and again; a {@link
 * TransferBuffer} belongs to whoever took it, and to every use that was announced, until all of
 * them have let go. No threads.
 */
package io.weft.crosshost.buffer;
