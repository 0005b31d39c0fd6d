package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.List;

/**
 * The meeting of a communicator once more, under another id, for another communicator of the same
 * ranks. Belongs to the first meeting and ends with it.
 *
 * @param name in front of its rounds; another for each meeting
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
    // The meeting is its opener's.
  }
}
