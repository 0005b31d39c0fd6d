package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;

import io.weft.device.Event;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.WeftPlugin;
import io.weft.spark.gpu.DeviceWork;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The time that a shuffle of numbers adds to a query, between two executors on one GPU: Spark's
 * shuffle and Weft's of rows on the host, and Weft's of batches on the GPU, by CUDA IPC and by
 * NCCL. Each query runs with the shuffle and without. Prints a table and writes it as JSON. Run by
 * {@code tests/gpu/run}; never a test.
 */
final class ExchangeRates {
  private static final boolean REAL = TestMachine.hasSpeed();
  private static final long ROWS = REAL ? 48_000_000 : 48_000;
  private static final int COLUMNS = 8;
  private static final int TASKS = 48;
  private static final int RUNS = REAL ? 3 : 1;
  private static final StructType COUNTED = new StructType().add("rows", DataTypes.LongType, false);

  private final SparkSession session;
  private final List<String> measured;

  private ExchangeRates(SparkSession session, List<String> measured) {
    this.session = session;
    this.measured = measured;
  }

  /**
   * Runs the measurement.
   *
   * @param args the JSON file to write
   */
  public static void main(String[] args) throws IOException {
    try {
      System.out.println("GPUs: " + TestMachine.count());
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU can be used: " + e.getMessage());
      return;
    }
    List<String> measured = new ArrayList<>();
    for (String sharing : List.of("0", "1")) {
      SparkSession session = start(sharing);
      try {
        ExchangeRates rates = new ExchangeRates(session, measured);
        if (sharing.equals("0")) {
          rates.onHosts("Spark's shuffle", false);
          rates.onHosts("Weft on the host", true);
        }
        rates.onGpus(sharing.equals("0") ? "Weft on the GPU, CUDA IPC" : "Weft on the GPU, NCCL");
      } finally {
        session.stop();
      }
    }
    Files.writeString(
        Path.of(args[0]),
        "{\"rows\": %d, \"bytes\": %d, \"sides\": [\n  %s]}%n"
            .formatted(ROWS, ROWS * COLUMNS * Long.BYTES, String.join(",\n  ", measured)));
  }

  private static SparkSession start(String sharing) {
    SparkSession.Builder builder =
        SparkSession.builder()
            .master(REAL ? "local-cluster[2,7,24576]" : "local-cluster[2,1,1024]")
            .appName("weft-exchange-rates")
            .config("spark.plugins", WeftPlugin.class.getName())
            .config("spark.executor.extraClassPath", System.getProperty("surefire.test.class.path"))
            .config("spark.executor.memory", REAL ? "16g" : "1g")
            .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
            .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.shuffle.orderIndependentChecksum.enabled", "false")
            .config("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false")
            .config("spark.executorEnv.NCCL_MULTI_RANK_GPU_ENABLE", sharing)
            .config("spark.weft.gpu.exchangeMemory", REAL ? "16g" : "64m");
    if (!TestMachine.isReal()) {
      builder.config("spark.executorEnv.LD_LIBRARY_PATH", TestMachine.doubles().toString());
    }
    return builder.getOrCreate();
  }

  private Dataset<Row> rows() {
    String[] columns =
        IntStream.range(0, COLUMNS)
            .mapToObj(i -> i == 0 ? "id * 7919 % 1000003 c0" : "id + " + i + " c" + i)
            .toArray(String[]::new);
    return session.range(0, ROWS, 1, TASKS).selectExpr(columns);
  }

  private static Dataset<Row> shuffled(Dataset<Row> rows) {
    return rows.repartition(TASKS, col("c0"));
  }

  private void onHosts(String name, boolean enabled) {
    session.conf().set("spark.weft.enabled", Boolean.toString(enabled));
    measure(name, () -> shuffled(rows()), this::rows, ExchangeRates::readAll);
    session.conf().set("spark.weft.enabled", "true");
  }

  private static void readAll(Dataset<Row> rows) {
    rows.write().format("noop").mode("overwrite").save();
  }

  private void onGpus(String name) {
    measure(
        name,
        () -> counted(shuffled(WeftGpu.onDevice(rows()))),
        () -> counted(WeftGpu.onDevice(rows())),
        counts -> {
          if (counts.collectAsList().isEmpty()) {
            throw new IllegalStateException("no batches");
          }
        });
  }

  private static Dataset<Row> counted(Dataset<Row> rows) {
    return WeftGpu.mapBatches(rows, COUNTED, ExchangeRates::oneRow);
  }

  /** A row for each batch, so that the batches need not come to the host. */
  private static DeviceTable oneRow(DeviceTable batch, DeviceWork work) {
    TableLayout layout = work.layout(1, 0);
    CudaMemory memory = work.take(layout.bytes());
    Event cleared =
        work.lane()
            .submit(
                "a row",
                () -> work.lane().stream().clear(memory.address(), layout.bytes()),
                batch.ready());
    return DeviceTable.of(memory, layout, cleared);
  }

  private interface Consumer {
    void read(Dataset<Row> rows);
  }

  private void measure(
      String name, Supplier<Dataset<Row>> with, Supplier<Dataset<Row>> without, Consumer consumer) {
    double[] longer = new double[RUNS];
    double[] shorter = new double[RUNS];
    for (int run = -1; run < RUNS; run++) {
      double first = seconds(with.get(), consumer);
      double second = seconds(without.get(), consumer);
      if (run >= 0) {
        longer[run] = first;
        shorter[run] = second;
      }
    }
    double all = median(longer);
    double rest = median(shorter);
    System.out.printf(
        Locale.ROOT,
        "%s: %.3f s with the shuffle, %.3f s without: the shuffle of %.2f GB adds %.3f s%n",
        name,
        all,
        rest,
        ROWS * COLUMNS * 8 / 1e9,
        all - rest);
    measured.add(
        String.format(
            Locale.ROOT,
            "{\"side\": \"%s\", \"withSeconds\": %.4f, \"withoutSeconds\": %.4f}",
            name,
            all,
            rest));
  }

  private static double seconds(Dataset<Row> rows, Consumer consumer) {
    long start = System.nanoTime();
    consumer.read(rows);
    return (System.nanoTime() - start) / 1e9;
  }

  private static double median(double[] values) {
    Arrays.sort(values);
    return values[values.length / 2];
  }
}
