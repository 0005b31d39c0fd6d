package io.weft.examples.bench.driver;

import io.weft.examples.measure.ProcessorTime;
import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * Reads the state of the driver's process.
 *
 * @param heapLeft if more than 0, so much of the heap is filled for good that these bytes are left
 */
record DriverReading(long heapLeft) implements SideTask<DriverReading.Figures> {
  /** Small enough for the collector to place it anywhere. */
  private static final int PIECE_BYTES = 128 << 10;

  private static final List<byte[]> FILLING = new ArrayList<>();

  /**
   * The state of the driver.
   *
   * @param port of Spark's RPC
   * @param threads of the process
   * @param cpuSeconds of the process since its start
   * @param liveBytes of the heap after a collection, with what fills it
   */
  record Figures(int port, int threads, double cpuSeconds, long liveBytes)
      implements Serializable {}

  @Override
  public Figures run(SparkSession session) {
    double cpuSeconds = ProcessorTime.nanos() / 1e9;
    long live = live();
    if (heapLeft > 0) {
      long filling = Runtime.getRuntime().maxMemory() - live - heapLeft;
      for (long filled = 0; filled < filling; filled += PIECE_BYTES) {
        FILLING.add(new byte[PIECE_BYTES]);
      }
      live = live();
    }
    return new Figures(
        session.sparkContext().conf().getInt("spark.driver.port", 0),
        Thread.getAllStackTraces().size(),
        cpuSeconds,
        live);
  }

  private static long live() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }
}
