package io.weft.shuffle.peer;

import java.io.IOException;

/**
 * Finds the address that an executor announced. The exchange caches addresses and asks again if a
 * peer cannot be reached, so implementations need no cache. Called on task threads without locks.
 * May block. Must support interruption and have its own timeout. Thread-safe.
 */
public interface PeerDirectory {
  /**
   * Looks up an executor.
   *
   * @return the last announced address of this id
   * @throws IOException if the executor is unknown or the directory cannot be reached; the message
   *     tells which
   */
  PeerAddress lookup(String executorId) throws IOException;
}
