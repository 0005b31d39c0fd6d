package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What a {@link DeviceFunction} works with: belongs to its task, and ends with it. One thread. */
public final class DeviceWork implements AutoCloseable {
  private final DeviceExchange device;
  private final StructType schema;
  private final Runnable wanted;
  private final DeviceUploads lane;

  /**
   * Opens a lane.
   *
   * @param schema of the tables that the function makes
   * @param wanted is asked while memory is waited for, and throws when nobody wants the result
   */
  public DeviceWork(DeviceExchange device, StructType schema, String name, Runnable wanted) {
    this.device = device;
    this.schema = schema;
    this.wanted = wanted;
    this.lane = device.gpu().uploads(name);
  }

  /** Where work is submitted; its stream is that of the driver. */
  public CudaLane lane() {
    return lane.lane();
  }

  /** Uploads on that lane. */
  public DeviceUploads uploads() {
    return lane;
  }

  /**
   * Takes memory on the device; blocks of shuffles give way.
   *
   * @throws IllegalStateException if there is no room in time
   */
  public CudaMemory take(long bytes) {
    return device.take(Math.max(TableLayout.ALIGNMENT, bytes), wanted);
  }

  /**
   * The layout of a table of the columns that were declared, with validity where they may be null.
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

  /** A deadline for the device. */
  public Deadline deadline() {
    return device.deadline();
  }

  /** The columns that were declared. */
  public StructType schema() {
    return schema;
  }

  @Override
  public void close() {
    lane.close();
  }
}
