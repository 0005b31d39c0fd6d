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

  /** Appended before one looks how large rows are. */
  private static final int FIRST_ROWS = 64;

  private static final int MOST_STEP_ROWS = 1 << 12;

  /** Of a table, that are appended at a time. */
  private static final int STEPS = 4;

  private final DeviceExchange device;
  private final StructType schema;
  private final Runnable wanted;
  private final Consumer<DeviceTable> consumer;
  private final String name;
  private final ChunkBuilder builder;

  /** Opened with the first table. */
  private DeviceUploads uploads;

  private int stepRows = FIRST_ROWS;

  /**
   * Nothing gathered yet.
   *
   * @param schema of the batches, without an {@link TableTypes#obstacle}
   * @param name of its lane
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
    this.name = name;
    this.builder = new ChunkBuilder(schema, device.arena(), this::upload);
  }

  /**
   * Appends rows of a batch until a table is made of them or the batch is at its end: nobody need
   * hold more than one table. The rows that were appended are free to change afterwards.
   *
   * @param start the first row
   * @return the first row that was not appended; the batch's number of rows at its end
   * @throws IOException if there is no memory on the host to gather them
   */
  public int append(ColumnarBatch batch, int start) throws IOException {
    int row = start;
    while (row < batch.numRows()) {
      int count = Math.min(stepRows, batch.numRows() - row);
      builder.append(batch, row, count);
      row += count;
      if (builder.rows() > 0) {
        long rowBytes = Math.max(1, builder.bytes() / builder.rows());
        stepRows = (int) Math.max(1, Math.min(MOST_STEP_ROWS, stepBytes() / rowBytes));
      }
      if (builder.rows() >= MOST_ROWS || builder.bytes() >= device.unitBytes()) {
        builder.flush();
        return row;
      }
    }
    return row;
  }

  private long stepBytes() {
    return device.unitBytes() / STEPS;
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
        Event uploaded = lane().upload("the upload of " + layout, runs.runs(), memory);
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

  private DeviceUploads lane() {
    if (uploads == null) {
      uploads = device.gpu().uploads(name);
    }
    return uploads;
  }

  /** Waits for the lane; rows that were not made a table are lost. Can be repeated. */
  @Override
  public void close() {
    if (uploads != null) {
      uploads.close();
    }
    builder.close();
  }
}
