package io.weft.spark.gpu.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.HostTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.ExecutorGpu;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Work of a function with JCuda is ordered behind the work that makes a batch, and before the work
 * that uses its result, by events on the device.
 */
class JcudaOrderTest {
  private static final int ROWS = 100;
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final StructType SCHEMA = new StructType().add("n", DataTypes.LongType, false);

  private LocalSpark spark;
  private DeviceExchange device;
  private CudaMemoryPool pinned;
  private DeviceWork work;

  @BeforeEach
  void start() {
    spark = DoubleGpus.start(Map.of("spark.weft.gpu.exchangeMemory", "16m"));
    device = ExecutorGpu.current().exchange();
    pinned = CudaMemoryPool.open(device.gpu().device(), CudaMemoryPool.Kind.PINNED, 1 << 20);
    work = new DeviceWork(device, SCHEMA, "ordered", () -> {});
  }

  @AfterEach
  void nothingIsLeftBehind() {
    DoubleGpus.controls().cudaDoublePause(0);
    if (work != null) {
      work.close();
      Awaitility.await("no memory of the function on the device")
          .atMost(TIMEOUT)
          .until(() -> device.tiers().memory().takenBytes() == 0);
      pinned.close();
    }
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  private DeviceTable uploaded() {
    TableLayout layout = TableLayout.fixed(List.of(TableColumn.of(ColumnKind.LONG, false)), ROWS);
    ByteBuffer numbers = ByteBuffer.allocate(ROWS * Long.BYTES).order(ByteOrder.nativeOrder());
    for (int row = 0; row < ROWS; row++) {
      numbers.putLong(row * Long.BYTES, row);
    }
    try (HostTable host = HostTable.allocate(pinned, layout)) {
      host.putValues(0, numbers);
      return host.upload(work.lane(), device.tiers().memory());
    }
  }

  /** Copies the column through scratch memory, and overwrites the scratch memory afterwards. */
  private static JcudaTable copied(JcudaTable batch, JcudaWork work) {
    long bytes = batch.column(0).bytes();
    CUdeviceptr scratch = work.take(bytes);
    CUdeviceptr made = work.take(bytes);
    succeed(JCudaDriver.cuMemcpyDtoDAsync(scratch, batch.column(0).data(), bytes, work.stream()));
    succeed(JCudaDriver.cuMemcpyDtoDAsync(made, scratch, bytes, work.stream()));
    succeed(JCudaDriver.cuMemsetD8Async(scratch, (byte) 9, bytes, work.stream()));
    return JcudaTable.of(batch.rows(), JcudaColumn.of(made, bytes));
  }

  private static void succeed(int result) {
    assertThat(result).as(() -> CUresult.stringFor(result)).isEqualTo(CUresult.CUDA_SUCCESS);
  }

  private void assertNumbers(DeviceTable made) {
    try (made;
        HostTable host = HostTable.download(work.lane(), made, pinned)) {
      host.ready().await(device.deadline());
      for (int row = 0; row < ROWS; row++) {
        assertThat(host.value(0, row).getLong()).isEqualTo(row);
      }
    }
  }

  /** Neither the function nor its caller waits for the device, which has not begun. */
  @Test
  void behindTheBatchAndBeforeTheUseOfTheResult() throws Exception {
    DoubleGpus.controls().cudaDoublePause(1);
    try (DeviceTable batch = uploaded()) {
      DeviceTable made = JcudaBatches.function(SCHEMA, JcudaOrderTest::copied).apply(batch, work);
      assertThat(batch.ready().state()).isNotEqualTo(Event.State.COMPLETE);
      assertThat(made.ready().state()).isNotEqualTo(Event.State.COMPLETE);
      DoubleGpus.controls().cudaDoublePause(0);
      assertNumbers(made);
    }
  }

  /** Memory stays until the work is complete, also after the batch was closed. */
  @Test
  void theMemoryOutlivesAFailure() {
    DeviceTable batch = uploaded();
    batch.ready().await(device.deadline());
    JcudaFunction failing =
        (table, given) -> {
          DoubleGpus.controls().cudaDoublePause(1);
          JcudaTable unused = copied(table, given);
          throw new IllegalStateException("enough");
        };
    try {
      assertThatThrownBy(() -> JcudaBatches.function(SCHEMA, failing).apply(batch, work))
          .hasMessage("enough");
      batch.close();
      long bytes = TableLayout.fixed(batch.layout().columns(), ROWS).bytes();
      assertThat(device.tiers().memory().takenBytes()).isGreaterThanOrEqualTo(3 * bytes);
    } finally {
      DoubleGpus.controls().cudaDoublePause(0);
    }
  }

  @Test
  void aBatchOfOtherColumnsIsRefused() {
    StructType other = new StructType().add("n", DataTypes.IntegerType, false);
    try (DeviceTable batch = uploaded()) {
      assertThatThrownBy(
              () -> JcudaBatches.function(other, (table, given) -> table).apply(batch, work))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("column 0 of a table is long, but n is int");
    }
  }
}
