package io.weft.spark.gpu;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.spark.columns.ChunkBuilder;
import io.weft.spark.columns.ChunkView;
import io.weft.table.DeviceTable;
import io.weft.table.TableLayout;
import java.io.IOException;
import java.util.function.Consumer;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes tables on the device of batches on the host: gathers as many rows as pay for a copy, in the
 * order in which they come. For one task thread.
 */
public final class DeviceUploader implements AutoCloseable {
  private static final int MOST_ROWS = 1 << 22;

  /** Appended before one looks how large the table has become. */
  private static final int STEP_ROWS = 1 << 12;

  private final DeviceExchange device;
  private final StructType schema;
  private final Runnable wanted;
  private final Consumer<DeviceTable> consumer;
  private final DeviceUploads uploads;
  private final ChunkBuilder builder;

  /**
   * Nothing gathered yet.
   *
   * @param schema of the batches, without an {@link TableTypes#obstacle}
   * @param name of the lane
   * @param wanted is asked while it waits for memory, and throws when nobody wants the tables
   * @param consumer takes each table over, on the calling thread
   */
  public DeviceUploader(
      DeviceExchange device,
      StructType schema,
      String name,
      Runnable wanted,
      Consumer<DeviceTable> consumer) {
    this.device = device;
    this.schema = schema;
    this.wanted = wanted;
    this.consumer = consumer;
    this.uploads = device.gpu().uploads(name);
    this.builder = new ChunkBuilder(schema, device.arena(), this::upload);
  }

  /**
   * Appends the rows of a batch, which is free to change afterwards.
   *
   * @throws IOException if there is no memory on the host to gather them
   */
  public void append(ColumnarBatch batch) throws IOException {
    for (int start = 0; start < batch.numRows(); start += STEP_ROWS) {
      builder.append(batch, start, Math.min(STEP_ROWS, batch.numRows() - start));
      if (builder.rows() >= MOST_ROWS || builder.bytes() >= device.unitBytes()) {
        builder.flush();
      }
    }
  }

  /** Makes a table of the last rows, if there are any. */
  public void flush() throws IOException {
    builder.flush();
  }

  private void upload(ChunkView chunk) {
    try (UploadRuns runs = UploadRuns.of(chunk, schema)) {
      TableLayout layout = runs.layout();
      CudaMemory memory = device.take(Math.max(TableLayout.ALIGNMENT, layout.bytes()), wanted);
      boolean made = false;
      try {
        Event uploaded = uploads.upload("the upload of " + layout, runs.runs(), memory);
        uploaded.awaitRecorded(device.deadline()); // The chunk goes when this returns.
        made = true;
        consumer.accept(DeviceTable.of(memory, layout, uploaded));
      } finally {
        if (!made) {
          memory.close();
        }
      }
    }
  }

  /** Waits for the lane; rows that were not made a table are lost. Can be repeated. */
  @Override
  public void close() {
    uploads.close();
    builder.close();
  }
}
