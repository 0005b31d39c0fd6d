package io.weft.peer;

import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The addresses of executors, each asked of a directory once until it proves wrong. Thread-safe.
 */
public final class KnownPeers {
  private final PeerDirectory directory;
  private final ConcurrentHashMap<String, PeerAddress> known = new ConcurrentHashMap<>();

  /** Knows nobody yet. */
  public KnownPeers(PeerDirectory directory) {
    this.directory = directory;
  }

  /**
   * The address of an executor.
   *
   * @throws IOException if the directory does not know it or cannot be asked
   */
  public PeerAddress find(String executorId) throws IOException {
    PeerAddress address = known.get(executorId);
    if (address == null) {
      address = directory.lookup(executorId);
      known.put(executorId, address);
    }
    return address;
  }

  /** Has the directory asked again: nobody answers at this address. */
  public void forget(PeerAddress address) {
    known.remove(address.executorId(), address);
  }
}
