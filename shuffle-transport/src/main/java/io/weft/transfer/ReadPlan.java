package io.weft.transfer;

import io.weft.catalog.PeerIndex;
import io.weft.catalog.ShuffleHold;
import io.weft.peer.PeerAddress;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Chooses the path to each block of a reader, and owns the holds and requests for it. For the
 * reader's thread.
 */
final class ReadPlan implements AutoCloseable {
  private final BlockReaders readers;
  private final FetchListener listener;
  private final List<ShuffleHold> holds = new ArrayList<>();
  private final Map<Source, Route> routes = new HashMap<>();
  private final LocalBlocks local;
  private RemoteBlocks remote;
  private boolean retained;

  /** One executor's blocks of one shuffle. */
  private record Source(String executorId, int shuffleId) {
    boolean holds(BlockRequest request) {
      return shuffleId == request.key().shuffleId() && executorId.equals(request.executorId());
    }
  }

  /** The path to a source. The hold is null for the network; the peer is null for this executor. */
  private record Route(ShuffleHold hold, PeerAddress peer) {}

  /** Starts without blocks. */
  ReadPlan(BlockReaders readers, FetchListener listener) {
    this.readers = readers;
    this.listener = listener;
    this.local = readers.localBlocks(listener, this::addRemote);
  }

  /** Keeps fetched and decrypted chunks until {@link #close()}. Other chunks stay in any case. */
  void retainAll() {
    retained = true;
    local.retainAll();
  }

  void addAll(List<BlockRequest> requests) throws BlockFetchException {
    Source source = null;
    Route route = null;
    for (BlockRequest request : requests) {
      // Requests are mostly sorted by executor.
      if (source == null || !source.holds(request)) {
        source = new Source(request.executorId(), request.key().shuffleId());
        route = routes.get(source);
      }
      if (route == null) {
        route = findRoute(request);
        routes.put(source, route);
      }
      if (route.hold() != null) {
        local.add(request, route.hold(), route.peer());
      } else {
        addRemote(request, route.peer());
      }
    }
  }

  private void addRemote(BlockRequest request, PeerAddress peer) {
    if (remote == null) {
      remote = readers.remoteBlocks(listener, retained);
    }
    remote.add(request, peer);
  }

  private Route findRoute(BlockRequest request) throws BlockFetchException {
    int shuffleId = request.key().shuffleId();
    if (request.executorId().equals(readers.executorId())) {
      return new Route(keep(readers.holdOwn(shuffleId)), null);
    }
    PeerAddress peer = null;
    try {
      peer = readers.peers().find(request.executorId());
      Optional<PeerIndex> onHost = readers.onHost(peer);
      return new Route(onHost.isEmpty() ? null : keep(onHost.get().hold(shuffleId)), peer);
    } catch (IOException e) {
      FetchFailures failures = readers.failures();
      if (FetchFailures.isInterrupt(e)) {
        throw failures.interrupted("shuffle " + shuffleId);
      }
      BlockPath path = peer == null ? BlockPath.UNKNOWN : BlockPath.SAME_HOST;
      throw failures.failure(request, request.startPartition(), peer, path, e);
    }
  }

  private ShuffleHold keep(ShuffleHold hold) {
    holds.add(hold);
    return hold;
  }

  LocalBlocks local() {
    return local;
  }

  /** Releases everything. Bytes that still arrive are dropped. */
  @Override
  public void close() {
    if (remote != null) {
      remote.close();
    }
    local.close();
    holds.forEach(ShuffleHold::close);
  }

  /** The fetcher, or null if no block comes over the network so far. */
  RemoteBlocks remote() {
    return remote;
  }
}
