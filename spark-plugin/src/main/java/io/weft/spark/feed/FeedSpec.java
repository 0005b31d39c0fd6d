package io.weft.spark.feed;

import java.io.Serializable;
import java.util.Optional;
import org.apache.spark.sql.types.StructType;

/**
 * Describes how a feed deals its rows. Sent to map and reduce tasks. Immutable.
 *
 * @param schema of the fed columns
 * @param ranks at least 1
 * @param batchRows rows of a full batch
 * @param byKey whether each row has its rank in a further column, instead of being dealt evenly
 * @param shuffleSeed null for the order of the data
 * @param lastBatch the treatment of rows that fill no batch
 * @param dumpAt the step at which ranks dump their batch
 * @param onGpus whether rows move from GPU to GPU, instead of from host to host
 */
record FeedSpec(
    StructType schema,
    int ranks,
    int batchRows,
    boolean byKey,
    Long shuffleSeed,
    LastBatch lastBatch,
    DumpAt dumpAt,
    boolean onGpus)
    implements Serializable {
  /** Creates the spec of a feed from host to host. */
  FeedSpec(
      StructType schema,
      int ranks,
      int batchRows,
      boolean byKey,
      Long shuffleSeed,
      LastBatch lastBatch,
      DumpAt dumpAt) {
    this(schema, ranks, batchRows, byKey, shuffleSeed, lastBatch, dumpAt, false);
  }

  Optional<Long> seed() {
    return Optional.ofNullable(shuffleSeed);
  }

  /** Returns the same feed from GPU to GPU. */
  FeedSpec betweenGpus() {
    return new FeedSpec(schema, ranks, batchRows, byKey, shuffleSeed, lastBatch, dumpAt, true);
  }

  /** Returns the same feed from host to host. */
  FeedSpec onHosts() {
    return new FeedSpec(schema, ranks, batchRows, byKey, shuffleSeed, lastBatch, dumpAt);
  }

  /**
   * The step to dump.
   *
   * @param step number of a batch, counted from 0 through the epochs of the feed; -1 for none
   * @param folder on the executors' hosts; empty for one in their working folders
   */
  record DumpAt(int step, String folder) implements Serializable {
    static final DumpAt NEVER = new DumpAt(-1, "");
  }
}
