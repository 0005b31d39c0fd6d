package io.weft.crosshost.gpu;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.List;

/**
 * A meeting once more, under another id, after what was to be made in it first has failed. Belongs
 * to the first meeting and ends with it.
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
    // The meeting is its opener's.
  }
}
