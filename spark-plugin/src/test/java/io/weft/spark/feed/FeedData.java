package io.weft.spark.feed;

import io.weft.collectives.DataType;
import io.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/** Data sets for feeds, and the rows that a rank reads from them. */
final class FeedData {
  /** Elements of "x" in a row. */
  static final int WIDTH = 6;

  private FeedData() {}

  /**
   * Rows with an id, a tensor x of [2, 3] floats that are id + 0 to id + 5, a group (id modulo 7)
   * and a text.
   */
  static Dataset<Row> rows(SparkSession session, long rows, int partitions) {
    return session
        .range(0, rows, 1, partitions)
        .selectExpr(
            "id",
            "transform(sequence(0, 5), i -> cast(id + i as float)) x",
            "id % 7 as group",
            "if(id % 3 = 0, null, concat('row ', id)) text")
        .select(
            functions.col("id"),
            WeftTensors.column("x", DataType.FLOAT32, 2, 3),
            functions.col("group"),
            functions.col("text"));
  }

  /** The ids of a batch; fails if x does not match them. */
  static List<Long> ids(FeedBatch batch) {
    Tensor tensor = batch.tensor("id");
    ByteBuffer ids = tensor.byteBuffer();
    ByteBuffer x = batch.byteBuffer("x");
    List<Long> seen = new ArrayList<>();
    for (int row = 0; row < batch.rows(); row++) {
      long id = ids.getLong(8 * row);
      seen.add(id);
      for (int i = 0; i < WIDTH; i++) {
        float found = x.getFloat(4 * (WIDTH * row + i));
        if (found != id + i) {
          throw new AssertionError("row " + id + " has " + found + " at " + i);
        }
      }
    }
    return seen;
  }

  /** The ids of all batches of an epoch, batch by batch. */
  static ArrayList<List<Long>> epoch(FeedTask task, int epoch) {
    ArrayList<List<Long>> batches = new ArrayList<>();
    try (FeedBatches feed = task.batches(epoch)) {
      while (feed.hasNext()) {
        batches.add(ids(feed.next()));
      }
    }
    return batches;
  }

  /**
   * Returns whether an address is in a mapping of an exchange file, according to the kernel. Then
   * it is where a map task wrote it, and not a copy.
   */
  static boolean isInMappedSegment(long address) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      String[] ends = line.split("[- ]", 3);
      long start = Long.parseUnsignedLong(ends[0], 16);
      long end = Long.parseUnsignedLong(ends[1], 16);
      if (address >= start && address < end) {
        return line.contains("/weft-");
      }
    }
    return false;
  }
}
