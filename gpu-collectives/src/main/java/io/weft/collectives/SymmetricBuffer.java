package io.weft.collectives;

import java.util.Optional;

/**
 * The same number of elements on every rank, made by {@link Communicator#symmetric}. Collectives on
 * {@link #elements} work in place. Ranks on one host also read and write each other's elements
 * directly: {@link #put} into a peer's part, {@link #signal} the peer, and the peer {@link #await}s
 * the signal.
 *
 * <p>Ranks on several hosts have private memory instead, see {@link #whyPrivate}. Collectives and
 * barriers work there too; put, get and signals are an error.
 *
 * <p>Every wait ends within the communicator's timeout. Thread-safe for different elements and
 * slots. Barriers are for one thread at a time.
 */
public interface SymmetricBuffer extends AutoCloseable {
  /** The number of signals from each peer. */
  int SLOTS = 16;

  /**
   * This rank's elements, zeros at first. Operations find a closed buffer; an address taken from
   * the elements does not. Once the buffer is closed or the task has ended, another buffer may have
   * the bytes, and later they are unmapped. So end all threads that use an address before the task
   * ends.
   */
  TypedBuffer elements();

  /** Why this rank cannot reach the elements of its peers; empty if it can. */
  Optional<String> whyPrivate();

  /**
   * Copies elements into a peer's part.
   *
   * @param source of the same element type
   * @param first element of the peer's part
   * @throws IndexOutOfBoundsException if peer or elements are out of range
   * @throws IllegalStateException if the buffer is closed
   * @throws CollectiveException of kind INVALID if the memory is private, or that of the source was
   *     freed
   */
  void put(TypedBuffer source, int peer, long first);

  /** Copies elements out of a peer's part; otherwise as {@link #put}. */
  void get(TypedBuffer target, int peer, long first);

  /**
   * Sets a signal of a peer, after everything this thread wrote before.
   *
   * @param slot 0 to 15
   * @param value counts upwards, from 0; may wrap around
   */
  void signal(int peer, int slot, int value);

  /**
   * Waits until a peer has signalled at least this value. Everything that it wrote before is
   * visible then.
   *
   * @throws CollectiveException naming both ranks, if the timeout passed or the peer ended; it
   *     breaks the communicator
   */
  void await(int peer, int slot, int value);

  /**
   * Returns once all of these ranks have arrived. Each then sees everything that the others wrote
   * before. Other ranks take no part and wait for nothing.
   *
   * @param ranks this rank and others, in any order; none for all ranks
   * @throws CollectiveException naming the rank that did not arrive, or that is in a barrier of
   *     other ranks; it breaks the communicator
   */
  void barrier(int... ranks);

  /**
   * Closes the buffer on this rank; not collective. Its bytes are used again once all ranks have
   * closed it and its last use has ended. The end of the communicator closes it too; private memory
   * then stays until the buffer is closed or unreachable.
   */
  @Override
  void close();
}
