package io.weft.crosshost.gpu;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.List;

/**
 * A second use of a bootstrap with another id, after the first communicator failed. Closes nothing:
 * it ends with the first.
 */
record SecondMeeting(Bootstrap first, UniqueId id) implements Bootstrap {
  @Override
  public int rank() {
    return first.rank();
  }

  @Override
  public int nranks() {
    return first.nranks();
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    return first.exchange("second" + round, mine, deadline);
  }

  @Override
  public void close() {
    // The opener closes the bootstrap.
  }
}
