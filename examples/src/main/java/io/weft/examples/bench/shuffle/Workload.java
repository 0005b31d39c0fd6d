package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.WriteInput;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Kinds of shuffles. Row counts are of a full run; one factor scales all workloads. */
enum Workload {
  NUMERIC("numeric", "numeric columns from Parquet", 10_000_000, 16, WriteInput.Kind.NUMERIC),
  STRINGS("strings", "strings from Parquet", 5_000_000, 16, WriteInput.Kind.STRINGS),
  TENSORS("tensors", "tensors of 1,024 floats", 150_000, 16, WriteInput.Kind.TENSORS),
  COMPUTED("computed", "computed rows", 10_000_000, 16, null),
  SMALL_BLOCKS("small-blocks", "200 × 200 blocks of 50 columns", 1_600_000, 200, null);

  private static final int COMPUTED_TASKS = 16;
  private static final int SMALL_BLOCK_TASKS = 200;
  private static final int SMALL_BLOCK_COLUMNS = 50;
  private static final List<String> COMPUTED_COLUMNS =
      List.of(
          "id * 2654435761 as k",
          "id as a",
          "id % 1000 as b",
          "id * id as c",
          "cast(id as double) as w",
          "id / 3.0D as x",
          "sqrt(id) as y",
          "date_add(date '2000-01-01', cast(id % 10000 as int)) as day");

  private final String id;
  private final String title;
  private final long fullRows;
  private final int partitions;
  private final WriteInput.Kind input;

  Workload(String id, String title, long fullRows, int partitions, WriteInput.Kind input) {
    this.id = id;
    this.title = title;
    this.fullRows = fullRows;
    this.partitions = partitions;
    this.input = input;
  }

  /** The name on the command line and in reports. */
  String id() {
    return id;
  }

  /** The description in tables. */
  String title() {
    return title;
  }

  /** The number of reduce partitions. */
  int partitions() {
    return partitions;
  }

  /** The number of rows of a run; a factor of 1 is a full run. */
  long rows(double factor) {
    return Math.max(1, Math.round(fullRows * factor));
  }

  /** The task that writes its input; empty if it computes its rows. */
  Optional<WriteInput> input(double factor, String folder) {
    return Optional.ofNullable(input).map(kind -> new WriteInput(kind, rows(factor), folder));
  }

  /** The source of its rows. If it has an input, the input is in the folder. */
  ShuffleJob.Source source(double factor, String folder) {
    return switch (this) {
      case COMPUTED ->
          new ShuffleJob.Source.Computed(rows(factor), COMPUTED_TASKS, COMPUTED_COLUMNS);
      case SMALL_BLOCKS ->
          new ShuffleJob.Source.Computed(rows(factor), SMALL_BLOCK_TASKS, smallBlockColumns());
      default -> new ShuffleJob.Source.Parquet(folder);
    };
  }

  /** Bytes of data in a computed row, counted as {@link WriteInput} counts them. */
  long computedRowBytes() {
    return switch (this) {
      case COMPUTED -> (COMPUTED_COLUMNS.size() - 1) * Long.BYTES + Integer.BYTES;
      case SMALL_BLOCKS -> SMALL_BLOCK_COLUMNS * Long.BYTES;
      default -> throw new IllegalStateException(id + " is read from Parquet");
    };
  }

  /**
   * Returns the workload with a name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  static Workload of(String id) {
    return Arrays.stream(values())
        .filter(workload -> workload.id.equals(id))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "no workload "
                        + id
                        + "; there are "
                        + String.join(", ", Arrays.stream(values()).map(Workload::id).toList())
                        + ", "
                        + String.join(" and ", ShuffleBench.Options.QUERY_SETS)));
  }

  private static List<String> smallBlockColumns() {
    List<String> columns = new ArrayList<>(List.of("id as k"));
    IntStream.range(1, SMALL_BLOCK_COLUMNS)
        .mapToObj(i -> "id + " + i + " as c" + i)
        .forEach(columns::add);
    return columns;
  }
}
