package io.weft.compat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/**
 * Executors in containers of YARN, with its check of their physical memory. No setting of Weft is
 * set. Executors have half of the data each and read the other half from each other, which is more
 * than the overhead.
 */
public final class YarnPrograms {
  private static final long MIB = 1L << 20;

  private YarnPrograms() {}

  static List<Program> all() {
    return List.of(
        program("YARN, default overhead", Map.of(), (session, folder) -> shuffle(session, 0, 0)),
        program(
            "YARN, overhead for shared memory",
            // As docs/deploy.md says for 1g of shared memory.
            Map.of("spark.executor.memoryOverhead", "1664m"),
            (session, folder) -> shuffle(session, 1024 * MIB, 1280 * MIB)),
        program(
            "YARN, a container that holds too much",
            Map.of("spark.task.maxFailures", "1"),
            YarnPrograms::tooMuch));
  }

  private static Program program(String name, Map<String, String> settings, Program.Body body) {
    Program program = Program.of(name, settings, body);
    return new Program(program.name(), "yarn", 1, program.settings(), body);
  }

  /** Weft's budget on each executor must be in the given range. */
  private static List<String> shuffle(SparkSession session, long least, long most)
      throws IOException {
    List<String> lines;
    try {
      lines =
          Program.sorted(
              session.sql(
                  "SELECT id % 13 AS k, COUNT(*), BIT_XOR(XXHASH64(id, s)) FROM"
                      + " (SELECT id, REPEAT(STRING(XXHASH64(id)), 10) AS s"
                      + " FROM RANGE(0, 8000000, 1, 16) DISTRIBUTE BY id) GROUP BY id % 13"));
    } catch (RuntimeException e) {
      throw new IllegalStateException("YARN ended containers: " + YarnContainers.awaitEnded(), e);
    }
    if (!YarnContainers.ended().isEmpty()) {
      throw new IllegalStateException("YARN ended containers: " + YarnContainers.ended());
    }
    Compat.gauges(session, "memoryBudget")
        .forEach(
            (executor, bytes) -> {
              if (bytes < least || bytes > most) {
                throw new IllegalStateException("budget of executor " + executor + ": " + bytes);
              }
            });
    return lines;
  }

  /** Shows that the check works: YARN ends an executor that maps more than its container has. */
  private static List<String> tooMuch(SparkSession session, Path folder) {
    List<String> lines =
        Program.sorted(session.sql("SELECT DISTINCT id % 5 FROM RANGE(0, 100, 1, 4)"));
    String file = folder.resolve("large").toString();
    JavaSparkContext context = new JavaSparkContext(session.sparkContext());
    try {
      context.parallelize(List.of(1), 1).foreach(number -> holdForever(Path.of(file)));
    } catch (RuntimeException e) {
      List<String> all = new ArrayList<>(lines);
      for (String reason : YarnContainers.awaitEnded()) {
        all.add("physical memory limit: " + reason.contains("'PHYSICAL' memory limit"));
      }
      return all;
    }
    throw new IllegalStateException("the executor was not ended");
  }

  private static void holdForever(Path file) throws IOException {
    try (RandomAccessFile large = new RandomAccessFile(file.toFile(), "rw")) {
      large.setLength(1800 * MIB);
      MappedByteBuffer mapped =
          large.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, large.length());
      while (!TaskContext.get().isInterrupted()) {
        mapped.load();
      }
    }
  }
}
