package io.weft.compat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkContext;

/**
 * What an application shuffled as streams, from the JSON of its Weft tab.
 *
 * @param shuffles that went as streams
 * @param readBytes that executors have reported to have read of these, in place or over the network
 * @param bySpark shuffles that Spark's sort shuffle carried
 */
record StreamTotals(int shuffles, long readBytes, int bySpark) {
  static final StreamTotals NONE = new StreamTotals(0, 0, 0);

  private static final long DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  /** Waits until an executor has reported what it read; others may follow later. */
  static StreamTotals of(SparkContext context) throws IOException {
    URI tab = URI.create(context.uiWebUrl().get() + "/weft/json?pageSize=500");
    long end = System.nanoTime() + DEADLINE_NANOS;
    StreamTotals totals = read(tab);
    while (totals.readBytes == 0 && System.nanoTime() < end) {
      LockSupport.parkNanos(PAUSE_NANOS);
      totals = read(tab);
    }
    return totals;
  }

  private static StreamTotals read(URI tab) throws IOException {
    int shuffles = 0;
    int bySpark = 0;
    long bytes = 0;
    for (JsonNode row : new ObjectMapper().readTree(tab.toURL()).path("shuffles").path("rows")) {
      String route = row.path("route").asText();
      if (route.equals("streams")) {
        shuffles++;
        bytes +=
            row.path("own").asLong() + row.path("sameHost").asLong() + row.path("network").asLong();
      } else if (route.startsWith("Spark")) {
        bySpark++;
      }
    }
    return new StreamTotals(shuffles, bytes, bySpark);
  }

  @Override
  public String toString() {
    return "%d shuffles as streams, %d by Spark%s"
        .formatted(shuffles, bySpark, readBytes == 0 ? ", no stream was read" : "");
  }
}
