package io.weft.spark.gpu;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.spark.columns.ChunkBuilder;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.columns.RowsAhead;
import io.weft.table.ColumnKind;
import io.weft.table.DeviceTable;
import io.weft.table.TableLayout;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.Consumer;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes device tables from batches on the host. Gathers rows in their order up to an efficient size
 * for a copy; only a single large row can make a larger table. For one task thread.
 */
public final class DeviceUploader implements AutoCloseable {
  private static final int MOST_ROWS = 1 << 22;

  /** Rows measured at first; the number doubles each time that all of them fit. */
  private static final int FIRST_ROWS = 64;

  private static final int MOST_STEP_ROWS = 1 << 12;

  private final DeviceExchange device;
  private final StructType schema;
  private final Runnable cancelCheck;
  private final Consumer<DeviceTable> consumer;
  private final String name;
  private final ChunkBuilder builder;
  private final RowsAhead ahead;
  private final boolean hasTensors;

  /** Opened with the first table. */
  private DeviceUploads uploads;

  private int stepRows = FIRST_ROWS;

  /** Measured size of the gathered rows, including null tensors: those have no bytes in a chunk. */
  private long gatheredBytes;

  /** Number of rows in earlier tables. */
  private long uploadedRows;

  /**
   * Starts without rows.
   *
   * @param schema of the batches, without an {@link TableTypes#obstacle}
   * @param name of its lane
   * @param cancelCheck is called during waits for memory, and throws if the tables are no longer
   *     needed
   * @param consumer takes ownership of each table, on the calling thread
   */
  public DeviceUploader(
      DeviceExchange device,
      StructType schema,
      String name,
      Runnable cancelCheck,
      Consumer<DeviceTable> consumer) {
    this.device = device;
    this.schema = schema;
    this.cancelCheck = cancelCheck;
    this.consumer = consumer;
    this.name = name;
    this.builder = new ChunkBuilder(schema, device.arena(), this::upload);
    long[] tensorBytes = tensorBytes(schema);
    this.hasTensors = Arrays.stream(tensorBytes).anyMatch(bytes -> bytes > 0);
    this.ahead = new RowsAhead(schema, tensorBytes);
  }

  /** Bytes of a row of each tensor column, null or not; 0 for other columns. */
  private static long[] tensorBytes(StructType schema) {
    return Arrays.stream(schema.fields())
        .map(field -> TableTypes.column(field, true).orElseThrow())
        .mapToLong(column -> column.kind() == ColumnKind.TENSOR ? column.width() : 0)
        .toArray();
  }

  /**
   * Appends the rows of a batch. The caller may change the batch afterwards.
   *
   * @throws IOException if there is no host memory to gather the rows
   */
  public void append(ColumnarBatch batch) throws IOException {
    for (int row = 0; row < batch.numRows(); ) {
      row = append(batch, row);
    }
  }

  /**
   * Appends rows of a batch: at most as many as fill one table, by sizes measured beforehand. The
   * batch must not change until all of its rows are appended.
   *
   * @param first first row that is not appended yet
   * @return the next row to append; {@code first} if a full table was passed on instead
   * @throws IOException if there is no host memory to gather the rows
   * @throws IllegalArgumentException if a tensor does not have the shape that its column declares
   */
  public int append(ColumnarBatch batch, int first) throws IOException {
    int most = Math.min(stepRows, Math.min(MOST_ROWS - builder.rows(), batch.numRows() - first));
    long room = device.unitBytes() - bytes();
    int count = ahead.fitting(batch, first, most, room);
    stepRows = Math.max(1, Math.min(MOST_STEP_ROWS, 2 * count));
    if (count == 0 && builder.rows() > 0) {
      builder.flush();
      return first;
    }
    int appended = Math.max(1, count);
    builder.append(batch, first, appended);
    gatheredBytes += ahead.bytes();
    if (builder.rows() >= MOST_ROWS || bytes() >= device.unitBytes()) {
      builder.flush();
    }
    return first + appended;
  }

  /** Size of the table that the gathered rows make. */
  private long bytes() {
    if (builder.rows() == 0) {
      return 0;
    }
    return hasTensors ? Math.max(builder.bytes(), gatheredBytes) : builder.bytes();
  }

  /** Makes a table of the remaining rows, if there are any. */
  public void flush() throws IOException {
    builder.flush();
  }

  private void upload(ChunkView chunk) {
    RowPlace place = new RowPlace(TaskContext.getPartitionId(), uploadedRows);
    uploadedRows += chunk.rows();
    gatheredBytes = 0;
    try (UploadRuns runs = UploadRuns.of(chunk, schema, place)) {
      TableLayout layout = runs.layout();
      CudaMemory memory = device.take(Math.max(TableLayout.ALIGNMENT, layout.bytes()), cancelCheck);
      boolean made = false;
      try {
        Event uploaded = lane().upload("the upload of " + layout, runs.runs(), memory);
        uploaded.awaitRecorded(device.deadline()); // The chunk is freed when this returns.
        made = true;
        consumer.accept(DeviceTable.of(memory, layout, uploaded));
      } finally {
        if (!made) {
          memory.close();
        }
      }
    }
  }

  private DeviceUploads lane() {
    if (uploads == null) {
      uploads = device.gpu().uploads(name);
    }
    return uploads;
  }

  /** Waits for the lane and drops gathered rows. Idempotent. */
  @Override
  public void close() {
    if (uploads != null) {
      uploads.close();
    }
    builder.close();
  }
}
