package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.List;

/**
 * Uses one rendezvous again, under another id, for a further communicator of the same ranks. Owned
 * by the first rendezvous and ends with it.
 *
 * @param meeting the first rendezvous
 * @param id of the further communicator
 * @param name prefix of its rounds; unique for each communicator
 */
record NamedMeeting(Bootstrap meeting, UniqueId id, String name) implements Bootstrap {
  @Override
  public int rank() {
    return meeting.rank();
  }

  @Override
  public int nranks() {
    return meeting.nranks();
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    return meeting.exchange(name + round, mine, deadline);
  }

  @Override
  public void close() {
    // The opener closes the rendezvous.
  }
}
