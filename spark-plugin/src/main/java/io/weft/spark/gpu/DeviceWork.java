package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.DeviceUploads;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The resources of a {@link DeviceFunction}: they belong to its task, and are freed with it. For
 * one thread.
 */
public final class DeviceWork implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceWork.class);

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

  /**
   * Returns kernels in memory of the executor's GPU. They are loaded on first use and stay until
   * the executor ends.
   *
   * @param ptx the text of a module; each is loaded once
   * @throws io.weft.device.cuda.CudaException if the driver refuses it, with the reason
   */
  public CudaModule kernels(String ptx) {
    return device.gpu().kernels(ptx);
  }

  /**
   * Keeps memory until all work on a stream is complete, after a failure. If nothing more can be
   * enqueued, it waits for the stream. If the stream does not complete either, or the device
   * failed, the memory is never freed, because the work could overwrite the data of a new owner.
   *
   * @param what the work on the stream, for messages
   * @param keeper keeps the memory until an event has completed
   * @param cause why the work failed; failures of this call are added to it
   */
  public void keepAfterFailure(
      String what, CudaStream stream, Consumer<Event> keeper, Throwable cause) {
    try {
      keeper.accept(lane().after(what, stream));
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
      if (!isAtRest(stream, cause)) {
        LOG.warn("{}: the device may still use their memory, which is not freed", what);
        keeper.accept(new HostEvent(what + ", whose end is not known"));
      }
    }
  }

  private boolean isAtRest(CudaStream stream, Throwable cause) {
    try {
      return stream.awaitIdle(deadline());
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
      return false;
    }
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
