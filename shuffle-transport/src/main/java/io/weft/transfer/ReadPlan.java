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
 * Finds the way to each block of a reader, and keeps what is needed to go it: holds and transfers.
 * For the reader's thread.
 */
final class ReadPlan implements AutoCloseable {
  private final BlockReaders readers;
  private final FetchListener listener;
  private final List<ShuffleHold> holds = new ArrayList<>();
  private final Map<Place, Way> ways = new HashMap<>();
  private final LocalBlocks local;
  private RemoteBlocks remote;
  private boolean retained;

  /** One executor's blocks of one shuffle. */
  private record Place(String executorId, int shuffleId) {
    boolean holds(BlockRequest request) {
      return shuffleId == request.key().shuffleId() && executorId.equals(request.executorId());
    }
  }

  /** How they are reached: without a hold over the network; without a peer they are our own. */
  private record Way(ShuffleHold hold, PeerAddress peer) {}

  /** Starts without blocks. */
  ReadPlan(BlockReaders readers, FetchListener listener) {
    this.readers = readers;
    this.listener = listener;
    this.local = readers.localBlocks(listener, this::addRemote);
  }

  /**
   * What comes over the network, or has to be opened, stays until the end; the rest does anyway.
   */
  void retainAll() {
    retained = true;
    local.retainAll();
  }

  void addAll(List<BlockRequest> requests) throws BlockFetchException {
    Place place = null;
    Way way = null;
    for (BlockRequest request : requests) {
      // They mostly come sorted by executor.
      if (place == null || !place.holds(request)) {
        place = new Place(request.executorId(), request.key().shuffleId());
        way = ways.get(place);
      }
      if (way == null) {
        way = findWay(request);
        ways.put(place, way);
      }
      if (way.hold() != null) {
        local.add(request, way.hold(), way.peer());
      } else {
        addRemote(request, way.peer());
      }
    }
  }

  private void addRemote(BlockRequest request, PeerAddress peer) {
    if (remote == null) {
      remote = readers.remoteBlocks(listener, retained);
    }
    remote.add(request, peer);
  }

  private Way findWay(BlockRequest request) throws BlockFetchException {
    int shuffleId = request.key().shuffleId();
    if (request.executorId().equals(readers.executorId())) {
      return new Way(keep(readers.holdOwn(shuffleId)), null);
    }
    PeerAddress peer = null;
    try {
      peer = readers.peers().find(request.executorId());
      Optional<PeerIndex> onHost = readers.onHost(peer);
      return new Way(onHost.isEmpty() ? null : keep(onHost.get().hold(shuffleId)), peer);
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

  /** Lets go of everything; what is still on its way is dropped. */
  @Override
  public void close() {
    if (remote != null) {
      remote.close();
    }
    local.close();
    holds.forEach(ShuffleHold::close);
  }

  /** Null as long as nothing comes over the network. */
  RemoteBlocks remote() {
    return remote;
  }
}
