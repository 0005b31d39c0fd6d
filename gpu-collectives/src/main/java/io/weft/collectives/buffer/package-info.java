/**
 * What collectives work on: runs of typed elements outside the heap, and how elements are combined.
 *
 * <p>Immutable views, hence thread-safe; the memory belongs to a {@code BufferOwner} and is freed
 * by it.
 */
package io.weft.collectives.buffer;
