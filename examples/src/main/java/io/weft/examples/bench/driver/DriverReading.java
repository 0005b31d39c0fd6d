package io.weft.examples.bench.driver;

import io.weft.examples.measure.ProcessorTime;
import io.weft.examples.side.SideTask;
import java.io.Serializable;
import org.apache.spark.sql.SparkSession;

/** Reads the state of the driver's process. */
record DriverReading() implements SideTask<DriverReading.Figures> {
  /**
   * The state of the driver.
   *
   * @param port of Spark's RPC
   * @param threads of the process
   * @param cpuSeconds of the process since its start
   * @param liveBytes of the heap after a collection
   * @param maxBytes of the heap
   */
  record Figures(int port, int threads, double cpuSeconds, long liveBytes, long maxBytes)
      implements Serializable {}

  @Override
  public Figures run(SparkSession session) {
    double cpuSeconds = ProcessorTime.nanos() / 1e9;
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return new Figures(
        session.sparkContext().conf().getInt("spark.driver.port", 0),
        Thread.getAllStackTraces().size(),
        cpuSeconds,
        runtime.totalMemory() - runtime.freeMemory(),
        runtime.maxMemory());
  }
}
