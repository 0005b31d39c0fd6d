package io.weft.catalog;

import io.weft.host.ExecutorFolder;
import io.weft.metrics.ExchangeCounters;
import io.weft.peer.PeerAddress;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The peers on this host, by incarnation. A peer is on this host if it announced our kernel's boot
 * id and the folder it announced is visible here with the token it announced; names and addresses
 * prove nothing, and containers on one kernel may not see each other's folders. Thread-safe.
 */
public final class HostPeers implements AutoCloseable {
  private final PeerIndex.Reader reader;
  private final ExchangeCounters counters;
  private final ConcurrentHashMap<String, Optional<PeerIndex>> peers = new ConcurrentHashMap<>();

  /**
   * Knows nobody yet.
   *
   * @param executorId of this executor, for its leases
   * @param incarnation of this executor, for its leases
   */
  public HostPeers(String executorId, String incarnation, ExchangeCounters counters) {
    this.reader = new PeerIndex.Reader(executorId, incarnation);
    this.counters = counters;
  }

  /** The peer's blocks, if it is on this host; found out once for each incarnation. */
  public Optional<PeerIndex> find(PeerAddress peer) {
    String key = peer.executorId() + "-" + peer.incarnation();
    Optional<PeerIndex> known = peers.get(key);
    if (known == null) {
      Optional<PeerIndex> found =
          isReachable(peer) ? Optional.of(new PeerIndex(peer, reader, counters)) : Optional.empty();
      known = Optional.ofNullable(peers.putIfAbsent(key, found)).orElse(found);
    }
    return known;
  }

  static boolean isReachable(PeerAddress peer) {
    return ExecutorFolder.isReachable(peer.bootId(), Path.of(peer.folder()), peer.token());
  }

  /** Gives back the leases on a shuffle as soon as its readers in this process are done. */
  public void removeShuffle(int shuffleId) {
    peers.values().forEach(peer -> peer.ifPresent(index -> index.removeShuffle(shuffleId)));
  }

  /** Segments of peers that are mapped now. */
  public int mappedSegments() {
    return peers.values().stream().mapToInt(p -> p.map(PeerIndex::mappedSegments).orElse(0)).sum();
  }

  /** Gives all leases back and unmaps everything that nobody reads any more. */
  @Override
  public void close() {
    peers.values().forEach(peer -> peer.ifPresent(PeerIndex::close));
  }
}
