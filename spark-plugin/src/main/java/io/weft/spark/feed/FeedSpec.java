package io.weft.spark.feed;

import java.io.Serializable;
import java.util.List;
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
 * @param onGpus how rows go from GPU to GPU; null where they go from host to host
 */
record FeedSpec(
    StructType schema,
    int ranks,
    int batchRows,
    boolean byKey,
    Long shuffleSeed,
    LastBatch lastBatch,
    DumpAt dumpAt,
    OnGpus onGpus)
    implements Serializable {
  /** A feed from host to host. */
  FeedSpec(
      StructType schema,
      int ranks,
      int batchRows,
      boolean byKey,
      Long shuffleSeed,
      LastBatch lastBatch,
      DumpAt dumpAt) {
    this(schema, ranks, batchRows, byKey, shuffleSeed, lastBatch, dumpAt, null);
  }

  Optional<Long> seed() {
    return Optional.ofNullable(shuffleSeed);
  }

  /** The same feed from host to host. */
  FeedSpec onHosts() {
    return new FeedSpec(schema, ranks, batchRows, byKey, shuffleSeed, lastBatch, dumpAt);
  }

  /**
   * An exchange between GPUs.
   *
   * @param keys columns whose hash is a row's rank; none where there are none, or devices do not
   *     hash them
   */
  record OnGpus(List<String> keys) implements Serializable {}

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
