/**
 * Memory at equal offsets on all ranks of one host, and recorded collectives. Start with {@link
 * io.weft.collectives.symmetric.SymmetricArena} for windows with put, get, signal and wait, with
 * {@link io.weft.collectives.symmetric.CollectiveMemoryCache} for memory that outlives its
 * communicator, and with {@link io.weft.collectives.symmetric.StepRecording} for a sequence of
 * collectives that is recorded once and replayed. Users call {@link
 * io.weft.collectives.Communicator#symmetric} and {@link io.weft.collectives.Communicator#record}.
 *
 * <p>Methods that all ranks call together ("collective") run on the caller's thread, one at a time
 * per communicator. An arena owns its mappings until it is closed; the cache owns them then. The
 * bytes of a window are reused only once it is closed, and its last use has ended, on every rank.
 */
package io.weft.collectives.symmetric;
