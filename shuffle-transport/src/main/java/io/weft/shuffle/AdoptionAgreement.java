package io.weft.shuffle;

import io.weft.shuffle.store.BlockKey;
import java.io.IOException;
import java.util.Collection;
import java.util.Set;

/**
 * Agrees with the driver on the adoption of a dead executor's map outputs. Called on one thread
 * without locks, except that of the dead executor's folder.
 */
@FunctionalInterface
public interface AdoptionAgreement {
  /** A request to the driver. A later one ends an earlier one that the driver has not begun. */
  enum Step {
    /** Which of these outputs does Spark still need? Changes nothing. */
    SELECT,
    /** Send readers of these outputs to this executor, as far as Spark needs them. */
    MOVE,
    /** Which of these outputs do readers find at this executor? Changes nothing. */
    KEEP
  }

  /**
   * Asks the driver. Blocks until it has answered.
   *
   * @param executorId of the dead executor
   * @param incarnation of the dead executor
   * @param outputs of the dead executor
   * @return those of the outputs for which the answer is yes
   * @throws AdopterRemovedException if the driver has removed this executor
   * @throws IOException if the driver refuses or fails, or does not answer in time. After {@link
   *     Step#MOVE} it is then not known whether readers are sent here
   * @throws InterruptedException if the thread is interrupted
   */
  Set<BlockKey> agree(
      Step step, String executorId, String incarnation, Collection<BlockKey> outputs)
      throws IOException, InterruptedException;

  /** The driver has removed this executor, so it can adopt nothing any more. */
  final class AdopterRemovedException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Creates the exception. */
    public AdopterRemovedException() {
      super("the driver has removed this executor");
    }
  }
}
