package io.weft.peer;

import java.io.IOException;

/**
 * Finds the address an executor announced. The exchange caches what it is told and asks again after
 * a peer could not be reached, so an implementation need not cache. Called on task threads, outside
 * locks; may block, must honour interruption and a deadline of its own. Thread-safe.
 */
public interface PeerDirectory {
  /**
   * Looks up one executor.
   *
   * @return the address last announced under this id
   * @throws IOException if no such executor is known or the directory cannot be reached; the
   *     message says which
   */
  PeerAddress lookup(String executorId) throws IOException;
}
