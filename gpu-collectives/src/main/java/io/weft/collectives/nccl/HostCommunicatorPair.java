package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;

/**
 * The two host communicators that accompany those of NCCL, with the same ranks.
 *
 * @param collectives where ranks agree on collectives
 * @param pairs where ranks compare sends with receives
 */
record HostCommunicatorPair(Communicator collectives, Communicator pairs) {
  /**
   * Creates both. All ranks call it together.
   *
   * @param pairsId the id of the second, the same on all ranks
   */
  static HostCommunicatorPair create(
      CommunicatorFactory hosts,
      Bootstrap bootstrap,
      CommunicatorOptions common,
      UniqueId pairsId) {
    Communicator collectives = hosts.create(bootstrap, common);
    try {
      return new HostCommunicatorPair(
          collectives, hosts.create(new NamedMeeting(bootstrap, pairsId, "pairs"), common));
    } catch (RuntimeException | Error e) {
      collectives.close();
      throw e;
    }
  }

  void close() {
    pairs.close();
    collectives.close();
  }
}
