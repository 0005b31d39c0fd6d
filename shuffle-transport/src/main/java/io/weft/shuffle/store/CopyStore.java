package io.weft.shuffle.store;

import java.io.IOException;
import java.io.OutputStream;

/**
 * The place of copies of map outputs, which outlive the executor that wrote them. All executors of
 * an application reach the same copies. Thread-safe.
 */
public interface CopyStore extends AutoCloseable {
  /**
   * Creates the file of a copy. The copy is complete after the stream is closed.
   *
   * @throws java.nio.file.FileAlreadyExistsException if there is one, complete or not
   */
  OutputStream create(BlockKey key) throws IOException;

  /**
   * Opens a copy. The caller closes it.
   *
   * @throws IOException if there is none
   */
  CopyInput open(BlockKey key) throws IOException;

  /** Deletes a copy, if there is one. */
  void delete(BlockKey key) throws IOException;

  /** Closes the connection to the place. Copies stay. */
  @Override
  void close();

  /** The bytes of a copy. For one thread. */
  interface CopyInput extends AutoCloseable {
    /**
     * Reads bytes.
     *
     * @param position of the first byte in the file
     * @throws IOException if there are fewer bytes
     */
    void readFully(long position, byte[] into, int offset, int length) throws IOException;

    @Override
    void close() throws IOException;
  }
}
