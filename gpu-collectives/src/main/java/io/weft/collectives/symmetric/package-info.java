/**
 * Memory at equal offsets on all ranks of a communicator that share a host, and what is built on
 * it: windows with put, get, signal and wait, barriers on signals, multicast, and the cache that
 * gives all ranks the same memory again.
 *
 * <p>A {@code SymmetricArena} owns its mappings; a {@code Window} belongs to whoever asked for it
 * until it is closed and its last use has ended, and its bytes are given out again only once that
 * is so on every rank. Methods that all ranks call together ("collective") run on the caller's
 * thread, one at a time per communicator; the rest says what it allows.
 */
package io.weft.collectives.symmetric;
