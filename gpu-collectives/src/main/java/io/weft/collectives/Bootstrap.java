package io.weft.collectives;

import io.weft.device.Deadline;
import java.util.List;

/**
 * How the ranks of a communicator find each other: one rank's end of a meeting in which small
 * messages go round. Only used while a communicator is created.
 *
 * <p>One thread at a time. Whoever opened it closes it, after the communicator is there or failed.
 */
public interface Bootstrap extends AutoCloseable {
  UniqueId id();

  int rank();

  int nranks();

  /**
   * Gives every rank the messages of all. All ranks call the same rounds in the same order.
   *
   * @param round a name of letters and digits, used once
   * @param mine at most 1 MiB
   * @return the messages in the order of the ranks
   * @throws CollectiveException naming the ranks that did not come before the deadline, or the
   *     ranks that ended
   */
  List<byte[]> exchange(String round, byte[] mine, Deadline deadline);

  /** Lets go of what the meeting used; the others may still be in their last round. */
  @Override
  void close();
}
