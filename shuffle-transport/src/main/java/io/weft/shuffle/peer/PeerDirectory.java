package io.weft.shuffle.peer;

import java.io.IOException;
import java.util.Map;
import java.util.Set;

/**
 * Finds the addresses that executors announced. The exchange caches addresses, asks for all peers
 * of a task together, and asks again if a peer cannot be reached, so implementations need no cache.
 * Called on task threads without locks. May block. Must support interruption and have its own
 * timeout. Thread-safe.
 */
public interface PeerDirectory {
  /**
   * Looks up executors in one request.
   *
   * @param executorIds at least one
   * @return the last announced addresses, by id. An executor announces itself before it runs tasks,
   *     so one with map outputs and without an address has ended
   * @throws IOException if the directory does not answer in time; says nothing about the executors
   */
  Map<String, PeerAddress> lookup(Set<String> executorIds) throws IOException;
}
