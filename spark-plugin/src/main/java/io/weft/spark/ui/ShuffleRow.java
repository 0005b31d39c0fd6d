package io.weft.spark.ui;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.List;
import java.util.Objects;

/**
 * One shuffle, as the Weft tab and the event log show it. Immutable.
 *
 * <p>The figures by path are zero for a shuffle that Spark carries, because Spark does not count
 * them by shuffle.
 *
 * @param id Spark's number of the shuffle
 * @param route name of the route
 * @param why the reason of the route, as a clause
 * @param writers the first stages that wrote it
 * @param readers the first stages that read it
 * @param attempts attempts of stages that wrote it
 * @param recomputed map outputs that were missing after all had been there, and that a stage
 *     computed again, in one attempt or in several
 * @param adopted map outputs of dead executors that others adopted
 * @param partitions reduce partitions; 0 if not known
 * @param rows rows written by the tasks of completed stages
 * @param batches batches that successful tasks wrote; 0 if they wrote records
 * @param written bytes written by them
 * @param onDisk bytes of map outputs on disk, because shared memory was full
 * @param own bytes of the reading executor's own blocks, read in place
 * @param sameHost bytes of other executors on the host, read in place
 * @param network bytes received over the network
 * @param gpu bytes read from GPUs
 * @param waitMillis time that readers waited for blocks, added up over tasks
 * @param smallest bytes of the smallest partition, as reported to Spark; -1 if not known
 * @param median bytes of the median partition, or -1
 * @param largest bytes of the largest partition, or -1
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record ShuffleRow(
    int id,
    String route,
    String why,
    List<Integer> writers,
    List<Integer> readers,
    int attempts,
    long recomputed,
    long adopted,
    int partitions,
    long rows,
    long batches,
    long written,
    long onDisk,
    long own,
    long sameHost,
    long network,
    long gpu,
    long waitMillis,
    long smallest,
    long median,
    long largest) {
  /** Maximum number of stages that are kept of each side. */
  static final int MAX_STAGES = 8;

  public ShuffleRow {
    route = Objects.requireNonNullElse(route, "");
    why = Objects.requireNonNullElse(why, "");
    writers = writers == null ? List.of() : List.copyOf(writers);
    readers = readers == null ? List.of() : List.copyOf(readers);
  }

  /** Whether the sizes of the partitions are known. */
  boolean hasSizes() {
    return largest >= 0;
  }
}
