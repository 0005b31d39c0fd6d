package io.weft.shuffle.peer;

import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Caches the addresses of executors from a directory, until an address is forgotten. Thread-safe.
 */
public final class KnownPeers {
  private final PeerDirectory directory;
  private final ConcurrentHashMap<String, PeerAddress> known = new ConcurrentHashMap<>();

  /** Starts without addresses. */
  public KnownPeers(PeerDirectory directory) {
    this.directory = directory;
  }

  /**
   * Returns the address of an executor.
   *
   * @throws IOException if the directory does not know it or cannot be reached
   */
  public PeerAddress find(String executorId) throws IOException {
    PeerAddress address = known.get(executorId);
    if (address == null) {
      address = directory.lookup(executorId);
      known.put(executorId, address);
    }
    return address;
  }

  /** Forgets an address that does not answer, so that the directory is queried again. */
  public void forget(PeerAddress address) {
    known.remove(address.executorId(), address);
  }
}
