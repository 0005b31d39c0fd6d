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
  /**
   * Asks the driver to send readers of these outputs to this executor. Blocks until it has
   * answered.
   *
   * @param executorId of the dead executor
   * @param incarnation of the dead executor
   * @param outputs that this executor has now
   * @return the outputs that readers now find here; the others are not needed
   * @throws IOException if the driver refuses, or does not answer in time
   * @throws InterruptedException if the thread is interrupted
   */
  Set<BlockKey> agree(String executorId, String incarnation, Collection<BlockKey> outputs)
      throws IOException, InterruptedException;
}
