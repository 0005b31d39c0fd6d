package io.weft.shuffle.store;

import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.PeerAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The peers on this host, by incarnation. A peer is on this host if it announced the boot id of
 * this kernel and its folder is visible here with its token. Host names and addresses are not
 * reliable, and containers on one kernel may not see each other's folders. Thread-safe.
 */
public final class HostPeers implements AutoCloseable {
  private final PeerIndex.Reader reader;
  private final ExchangeCounters counters;
  private final ConcurrentHashMap<String, Optional<PeerIndex>> peers = new ConcurrentHashMap<>();

  /**
   * Creates an empty set of peers.
   *
   * @param executorId of this executor, for its leases
   * @param incarnation of this executor, for its leases
   */
  public HostPeers(String executorId, String incarnation, ExchangeCounters counters) {
    this.reader = new PeerIndex.Reader(executorId, incarnation);
    this.counters = counters;
  }

  /**
   * The peer's blocks if it is on this host. Checked once for each incarnation; a peer that was not
   * found is checked again after {@link #forgetUnreachable}.
   */
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

  /** Releases the leases on a shuffle after its last reader in this process. */
  public void removeShuffle(int shuffleId) {
    peers.values().forEach(peer -> peer.ifPresent(index -> index.removeShuffle(shuffleId)));
  }

  /** Drops the pages of peers' segments from this process; they are mapped again when read. */
  public void dropPages() {
    peers.values().forEach(peer -> peer.ifPresent(PeerIndex::dropPages));
  }

  /** Looks for unreachable peers again: their folders may have been deleted and created again. */
  public void forgetUnreachable() {
    peers.values().removeIf(Optional::isEmpty);
  }

  /** Unmaps unused segments of peers whose files were deleted, so that their memory returns. */
  public void unmapDeleted() {
    peers.values().forEach(peer -> peer.ifPresent(PeerIndex::unmapDeleted));
  }

  /** Unmaps segments of peers that no shuffle has used for that time. */
  public void unmapIdle(Duration idle) {
    peers.values().forEach(peer -> peer.ifPresent(index -> index.unmapIdle(idle.toNanos())));
  }

  /** The number of segments of peers that are mapped now. */
  public int mappedSegments() {
    return peers.values().stream().mapToInt(p -> p.map(PeerIndex::mappedSegments).orElse(0)).sum();
  }

  /** Releases all leases and unmaps all segments without readers. */
  @Override
  public void close() {
    peers.values().forEach(peer -> peer.ifPresent(PeerIndex::close));
  }
}
