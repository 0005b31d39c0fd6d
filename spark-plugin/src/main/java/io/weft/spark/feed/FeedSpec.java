package io.weft.spark.feed;

import java.io.Serializable;
import java.util.Optional;
import org.apache.spark.sql.types.StructType;

/**
 * How a feed deals its rows. Travels to the tasks of both sides. Immutable.
 *
 * @param schema of the fed columns
 * @param ranks at least 1
 * @param batchRows rows of a full batch
 * @param byKey whether each row has its rank in a further column, instead of being dealt evenly
 * @param shuffleSeed null for the order of the data
 * @param lastBatch what becomes of rows that are left over
 * @param dumpAt when ranks write down what they see
 */
record FeedSpec(
    StructType schema,
    int ranks,
    int batchRows,
    boolean byKey,
    Long shuffleSeed,
    LastBatch lastBatch,
    DumpAt dumpAt)
    implements Serializable {
  Optional<Long> seed() {
    return Optional.ofNullable(shuffleSeed);
  }

  /**
   * A step to write down.
   *
   * @param step number of a batch, counted from 0 through the epochs of the feed; -1 for none
   * @param folder on the executors' hosts; empty for one in their working folders
   */
  record DumpAt(int step, String folder) implements Serializable {
    static final DumpAt NEVER = new DumpAt(-1, "");
  }
}
