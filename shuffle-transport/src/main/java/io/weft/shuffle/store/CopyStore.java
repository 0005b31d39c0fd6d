package io.weft.shuffle.store;

import java.io.IOException;
import java.io.OutputStream;

/**
 * The place of copies of map outputs, which outlive the executor that wrote them. All executors of
 * an application reach the same copies. Each writes files of its own, so copies of one output by
 * two executors never harm each other, also without exclusive creation. Thread-safe.
 */
public interface CopyStore extends AutoCloseable {
  /**
   * Creates this executor's copy of an output, in place of an earlier one of its own. The copy is
   * complete after the stream is closed.
   */
  OutputStream create(BlockKey key) throws IOException;

  /**
   * Opens a copy. The caller closes it.
   *
   * @param writer id of the executor that wrote it
   * @throws IOException if there is none
   */
  CopyInput open(BlockKey key, String writer) throws IOException;

  /** Deletes this executor's copy of an output, if there is one. */
  void delete(BlockKey key) throws IOException;

  /** Closes the connection to the place. Copies stay. */
  @Override
  void close();

  /** The bytes of a copy. For one thread. */
  interface CopyInput extends AutoCloseable {
    /**
     * Reads bytes. Each call may be a request to a remote store.
     *
     * @param position of the first byte in the file
     * @param into filled from {@code offset}
     * @param least number of bytes to read
     * @param most number of bytes to read, at least {@code least}
     * @return the number of bytes read
     * @throws IOException if there are fewer than {@code least}
     */
    int read(long position, byte[] into, int offset, int least, int most) throws IOException;

    @Override
    void close() throws IOException;
  }
}
