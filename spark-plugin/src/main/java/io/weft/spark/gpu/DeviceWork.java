package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The resources of a {@link DeviceFunction}: they belong to its task, and are freed with it. For
 * one thread.
 */
public final class DeviceWork implements AutoCloseable {
  private final DeviceExchange device;
  private final StructType schema;
  private final Runnable cancelCheck;
  private final DeviceUploads lane;

  /**
   * Opens a lane.
   *
   * @param schema of the tables that the function makes
   * @param cancelCheck is called during waits for memory, and throws if the result is no longer
   *     needed
   */
  public DeviceWork(DeviceExchange device, StructType schema, String name, Runnable cancelCheck) {
    this.device = device;
    this.schema = schema;
    this.cancelCheck = cancelCheck;
    this.lane = device.gpu().uploads(name);
  }

  /** The lane for the function's work; its stream is a stream of the CUDA driver. */
  public CudaLane lane() {
    return lane.lane();
  }

  /** Uploads on that lane. */
  public DeviceUploads uploads() {
    return lane;
  }

  /**
   * Allocates device memory; blocks of shuffles are spilled if needed.
   *
   * @throws IllegalStateException if there is no room in time
   */
  public CudaMemory take(long bytes) {
    return device.take(Math.max(TableLayout.ALIGNMENT, bytes), cancelCheck);
  }

  /**
   * The layout of a table with the declared columns, with validity if they are nullable.
   *
   * @param stringBytes for each column the bytes of all its strings; 0 for others
   */
  public TableLayout layout(int rows, long... stringBytes) {
    List<TableColumn> columns = new ArrayList<>();
    for (StructField field : schema.fields()) {
      columns.add(TableTypes.column(field, field.nullable()).orElseThrow());
    }
    return TableLayout.of(columns, rows, stringBytes);
  }

  /** Returns a new deadline for the device. */
  public Deadline deadline() {
    return device.deadline();
  }

  /** The declared columns. */
  public StructType schema() {
    return schema;
  }

  @Override
  public void close() {
    lane.close();
  }
}
