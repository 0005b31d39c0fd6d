package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.List;

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
          collectives, hosts.create(new PairsBootstrap(bootstrap, pairsId), common));
    } catch (RuntimeException | Error e) {
      collectives.close();
      throw e;
    }
  }

  void close() {
    pairs.close();
    collectives.close();
  }

  /**
   * Uses the rendezvous of the first communicator again for the second, under another id. Owned by
   * the first and ends with it.
   *
   * @param base the first rendezvous
   * @param id of the second communicator
   */
  private record PairsBootstrap(Bootstrap base, UniqueId id) implements Bootstrap {
    @Override
    public int rank() {
      return base.rank();
    }

    @Override
    public int nranks() {
      return base.nranks();
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      return base.exchange("pairs" + round, mine, deadline);
    }

    @Override
    public void close() {
      // The opener closes the rendezvous.
    }
  }
}
