/**
 * Data of collectives: ranges of typed elements outside the heap, and the reductions that combine
 * them.
 *
 * <p>Views are immutable and so thread-safe. A {@code BufferOwner} owns and frees the memory.
 */
package io.weft.collectives.buffer;
