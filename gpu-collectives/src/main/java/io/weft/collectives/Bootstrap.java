package io.weft.collectives;

import io.weft.device.Deadline;
import java.util.List;

/**
 * How the ranks of a communicator find each other: one rank's end of a rendezvous at which all
 * ranks exchange small messages. Only used while a communicator is created.
 *
 * <p>For one thread at a time. The code that opens it closes it, after the communicator is created
 * or has failed.
 */
public interface Bootstrap extends AutoCloseable {
  UniqueId id();

  int rank();

  int nranks();

  /**
   * Gives every rank the messages of all ranks. All ranks call the same rounds in the same order.
   *
   * @param round a name of letters and digits, used once
   * @param mine this rank's message, at most 1 MiB
   * @return the messages in rank order
   * @throws CollectiveException naming the ranks that did not arrive before the deadline, or the
   *     ranks that ended
   */
  List<byte[]> exchange(String round, byte[] mine, Deadline deadline);

  /** Releases the resources of the rendezvous. Other ranks may still be in their last round. */
  @Override
  void close();
}
