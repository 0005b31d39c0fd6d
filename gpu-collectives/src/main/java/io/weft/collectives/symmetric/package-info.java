/**
 * Memory at equal offsets on all ranks of one host, and recorded collectives. Enter by {@link
 * io.weft.collectives.symmetric.SymmetricArena} for windows with put, get, signal and wait, by
 * {@link io.weft.collectives.symmetric.CollectiveMemoryCache} for memory that all ranks reuse
 * together, and by {@link io.weft.collectives.symmetric.Recording} for a sequence of collectives
 * that is recorded once and replayed.
 *
 * <p>Methods that all ranks call together ("collective") run on the caller's thread, one at a time
 * per communicator. An arena owns its mappings. The bytes of a window are reused only once it is
 * closed, and its last use has ended, on every rank.
 */
package io.weft.collectives.symmetric;
