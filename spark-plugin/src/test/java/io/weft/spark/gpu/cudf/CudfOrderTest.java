package io.weft.spark.gpu.cudf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBufferView;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.Table;
import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.HostTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.ExecutorGpu;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * cudf's work is ordered behind the work that makes a batch, and before the work that uses its
 * result.
 */
class CudfOrderTest {
  private static final int ROWS = 100;
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final StructType SCHEMA =
      new StructType().add("even", DataTypes.BooleanType).add("n", DataTypes.LongType);

  private LocalSpark spark;
  private DeviceExchange device;
  private CudaMemoryPool pinned;
  private DeviceWork work;

  @BeforeEach
  void start() {
    spark = DoubleGpus.start(Map.of("spark.weft.gpu.exchangeMemory", "16m"));
    CudfDouble.assume();
    device = ExecutorGpu.current().exchange();
    pinned = CudaMemoryPool.open(device.gpu().device(), CudaMemoryPool.Kind.PINNED, 1 << 20);
    work = new DeviceWork(device, SCHEMA, "ordered", () -> {});
  }

  @AfterEach
  void nothingIsLeftBehind() {
    DoubleGpus.controls().cudaDoublePause(0);
    try {
      if (work != null) {
        work.close();
        Awaitility.await("no memory of the function on the device")
            .atMost(TIMEOUT)
            .until(() -> device.tiers().memory().takenBytes() == 0);
        pinned.close();
      }
    } finally {
      spark.close();
    }
    DoubleGpus.assertClean();
    assertThat(CudfDouble.live()).isEmpty();
  }

  private DeviceTable uploaded() {
    List<TableColumn> columns =
        List.of(TableColumn.of(ColumnKind.BOOLEAN, true), TableColumn.of(ColumnKind.LONG, false));
    TableLayout layout = TableLayout.fixed(columns, ROWS);
    ByteBuffer even = ByteBuffer.allocate(ROWS);
    ByteBuffer numbers = ByteBuffer.allocate(ROWS * Long.BYTES).order(ByteOrder.nativeOrder());
    for (int row = 0; row < ROWS; row++) {
      even.put(row, (byte) (1 - row % 2));
      numbers.putLong(row * Long.BYTES, row);
    }
    try (HostTable host = HostTable.allocate(pinned, layout)) {
      host.putAllValid(0).putValues(0, even).putValues(1, numbers);
      return host.upload(work.lane(), device.tiers().memory());
    }
  }

  private DeviceTable evens(DeviceTable batch) {
    CudfFunction function = table -> table.filter(table.getColumn(0));
    return applied(CudfBatches.function(SCHEMA, CudfDouble::initialise, function), batch);
  }

  private DeviceTable applied(DeviceFunction function, DeviceTable batch) {
    try {
      return function.apply(batch, work);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private void assertEvens(DeviceTable made) {
    try (made;
        HostTable host = HostTable.download(work.lane(), made, pinned)) {
      host.ready().await(device.deadline());
      assertThat(made.rows()).isEqualTo(ROWS / 2);
      for (int row = 0; row < ROWS / 2; row++) {
        assertThat(host.value(1, row).getLong()).isEqualTo(2L * row);
      }
      assertThat(made.layout().columns().get(0).nullable()).as("validity without nulls").isFalse();
    }
  }

  /** cudf would wait for the batch inside its library, without a deadline. */
  @Test
  void behindTheBatch() throws Exception {
    DoubleGpus.controls().cudaDoublePause(1);
    try (DeviceTable batch = uploaded()) {
      Running running = Running.start(() -> evens(batch));
      int within;
      try {
        running.awaitWaiting();
        within = CudfDouble.resting();
      } finally {
        DoubleGpus.controls().cudaDoublePause(0);
      }
      assertEvens(running.result().get(TIMEOUT.toSeconds(), TimeUnit.SECONDS));
      assertThat(within).as("threads that wait in cudf").isZero();
    }
  }

  /** A call on its own thread. */
  private record Running(Thread thread, CompletableFuture<DeviceTable> result) {
    static Running start(Supplier<DeviceTable> call) {
      CompletableFuture<DeviceTable> result = new CompletableFuture<>();
      Runnable run =
          () -> {
            try {
              result.complete(call.get());
            } catch (Throwable e) {
              result.completeExceptionally(e);
            }
          };
      Thread thread = new Thread(run, "ordered");
      thread.setDaemon(true);
      thread.start();
      return new Running(thread, result);
    }

    void awaitWaiting() {
      Awaitility.await("the call waits, or has ended")
          .atMost(TIMEOUT)
          .until(
              () ->
                  result.isDone()
                      || CudfDouble.resting() > 0
                      || thread.getState() == Thread.State.TIMED_WAITING);
    }
  }

  /**
   * The copies are enqueued, not complete, when the function's table is closed and the call
   * returns.
   */
  @Test
  void beforeTheUseOfTheResult() throws Exception {
    try (DeviceTable batch = uploaded()) {
      CudfFunction pausing =
          table -> {
            Table made = table.filter(table.getColumn(0));
            DoubleGpus.controls().cudaDoublePause(1);
            return made;
          };
      DeviceTable made =
          CudfBatches.function(SCHEMA, CudfDouble::initialise, pausing).apply(batch, work);
      assertThat(made.ready().state()).isNotEqualTo(Event.State.COMPLETE);
      assertThat(CudfDouble.live()).as("closed already").isEmpty();
      DoubleGpus.controls().cudaDoublePause(0);
      assertEvens(made);
    } finally {
      DoubleGpus.controls().cudaDoublePause(0);
    }
  }

  /** Memory of a batch stays until cudf's work is complete, even if its function failed. */
  @Test
  void theMemoryOfABatchOutlivesAFailure() {
    DeviceTable batch = uploaded();
    batch.ready().await(device.deadline());
    CudfFunction failing =
        table -> {
          DoubleGpus.controls().cudaDoublePause(1);
          throw new IllegalStateException("enough");
        };
    DeviceFunction function = CudfBatches.function(SCHEMA, CudfDouble::initialise, failing);
    try {
      assertThatThrownBy(() -> function.apply(batch, work)).hasMessage("enough");
      batch.close();
      assertThat(device.tiers().memory().takenBytes()).isPositive();
    } finally {
      DoubleGpus.controls().cudaDoublePause(0);
    }
  }

  /**
   * Then the call waits for the work that cudf started; otherwise a new owner would get the batch's
   * memory too early.
   */
  @Test
  void aFailureWhoseEndCannotBeRecorded() {
    DeviceTable batch = uploaded();
    batch.ready().await(device.deadline());
    CudfFunction failing =
        table -> {
          try (Table made = table.filter(table.getColumn(0))) {
            DoubleGpus.controls().cudaDoublePause(1);
            DoubleGpus.controls().cudaDoubleFailEvents(1);
            throw new IllegalStateException("enough of " + made.getRowCount());
          }
        };
    DeviceFunction function = CudfBatches.function(SCHEMA, CudfDouble::initialise, failing);
    Running running = Running.start(() -> applied(function, batch));
    boolean early;
    try (batch) {
      try {
        running.awaitWaiting();
        early = running.result().isDone();
      } finally {
        DoubleGpus.controls().cudaDoublePause(0);
      }
      assertThatThrownBy(() -> running.result().get(TIMEOUT.toSeconds(), TimeUnit.SECONDS))
          .hasStackTraceContaining("enough of 50")
          .hasStackTraceContaining("cuEventCreate");
    }
    assertThat(early).as("returned while cudf still worked").isFalse();
  }

  /** Without these checks the other tests would prove little. */
  @Test
  void theDoubleReportsInvalidInput() throws Exception {
    Optional<Long> none = Optional.of(0L);
    CudfFunction wrong =
        table -> {
          long end = table.getColumn(1).getData().getAddress() + ROWS * Long.BYTES;
          try (ColumnView crooked = new ColumnView(DType.INT8, 8, none, place(end - 8, 8), null);
              ColumnView gone = new ColumnView(DType.INT8, 1, none, place(64, 1), null);
              ColumnView few = new ColumnView(DType.INT64, 2, none, place(0, 8), null)) {
            assertThat(CudfDouble.live()).contains("views of cudf: 5").contains("tables of cudf");
            assertThat(crooked.getRowCount() + gone.getRowCount() + few.getRowCount()).isPositive();
          }
          return table;
        };
    try (DeviceTable batch = uploaded();
        DeviceTable made =
            CudfBatches.function(SCHEMA, CudfDouble::initialise, wrong).apply(batch, work)) {
      assertThat(made.rows()).isEqualTo(ROWS);
    }
    assertThat(DoubleGpus.violations())
        .contains("values begin at 0x")
        .contains("1 bytes of values are not on cudf's device")
        .contains("8 bytes of values for 2 rows of type 4");
  }

  private static DeviceMemoryBufferView place(long address, long bytes) {
    return new DeviceMemoryBufferView(address, bytes);
  }

  @Test
  void cudfOnAnotherGpuIsRefused() throws Exception {
    if (Rmm.isInitialized()) {
      Rmm.shutdown();
    }
    CudaLibrary library =
        CudaLibrary.load(
            ProbeOptions.defaults()
                .withEnvironment(
                    Map.of(
                        "LD_LIBRARY_PATH",
                        DoubleGpus.library("libcuda.so.1").getParent().toString())));
    try (DeviceTable batch = uploaded();
        CudaDevice other = library.open(1)) {
      CudfStart elsewhere =
          () -> {
            other.use();
            CudfDouble.initialise();
          };
      DeviceFunction function = CudfBatches.function(SCHEMA, elsewhere, table -> table);
      assertThatThrownBy(() -> function.apply(batch, work))
          .hasMessageContaining("cudf's memory in this executor is on GPU 1, and batches are on 0");
    } finally {
      Rmm.shutdown();
    }
  }
}
