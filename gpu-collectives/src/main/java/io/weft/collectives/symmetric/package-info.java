/**
 * Memory at equal offsets on all ranks of a communicator that share a host, and what is built on
 * it: windows with put, get, signal and wait, barriers on signals, multicast, and the cache that
 * lends all ranks the same memory again.
 *
 * <p>A {@code SymmetricArena} owns its mappings. A {@code Window} belongs to its requester until it
 * is closed and its last use has ended. Its bytes are reused only once that is so on every rank.
 * Methods that all ranks call together ("collective") run on the caller's thread, one at a time per
 * communicator. The other methods document their rules.
 */
package io.weft.collectives.symmetric;
