package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.device.DeviceCatalog;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * An application for all tests of a class. Its executor, in this JVM, has a GPU where exchanges
 * keep their blocks. No test may break a rule of the doubles or leak memory.
 */
public final class GpuSpark implements BeforeAllCallback, AfterEachCallback, AfterAllCallback {
  private final Map<String, String> settings;
  private LocalSpark spark;

  /**
   * @param settings in addition to those that enable exchanges on GPUs
   */
  public GpuSpark(Map<String, String> settings) {
    this.settings = new HashMap<>(settings);
    this.settings.put("spark.weft.route", "auto");
    // With Spark's checksums of rows, exchanges stay on the host.
    this.settings.put("spark.sql.shuffle.orderIndependentChecksum.enabled", "false");
    this.settings.put(
        "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false");
  }

  public LocalSpark local() {
    return spark;
  }

  /** The exchange of the executor. Opens the GPU on first use. */
  public static DeviceExchange device() {
    return ExecutorGpu.current().exchange();
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    spark = DoubleGpus.start(settings);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    assertThat(DoubleGpus.violations()).as("rules that were broken").isEmpty();
  }

  /** Used GPU memory has blocks of shuffles, which stay until Spark unregisters the shuffle. */
  @Override
  public void afterAll(ExtensionContext context) {
    if (spark == null) {
      return;
    }
    DeviceCatalog catalog = device().catalog();
    catalog.keys().forEach(key -> catalog.removeShuffle(key.shuffleId()));
    Awaitility.await("no memory of tasks on the GPU")
        .atMost(Duration.ofSeconds(60))
        .until(() -> device().tiers().memory().takenBytes() == 0);
    spark.close();
    spark = null;
    DoubleGpus.assertClean();
  }
}
