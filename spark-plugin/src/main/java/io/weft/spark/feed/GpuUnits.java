package io.weft.spark.feed;

import io.weft.collectives.buffer.DataType;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.deviceblocks.DeviceOutput;
import io.weft.memory.Memory;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceUnits;
import io.weft.table.DeviceTable;
import io.weft.table.PendingPartitions;
import io.weft.table.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.Arrays;
import java.util.List;

/**
 * Uploads the chunks of a map task as tables and splits them by rank on the device, while the next
 * chunk is built on the host. For one task thread.
 */
final class GpuUnits implements AutoCloseable {
  private final DeviceExchange device;
  private final GpuTables tables;
  private final int ranks;
  private final Runnable cancelCheck;
  private final DeviceUploads uploads;
  private final DeviceUnits units;

  /**
   * Starts without tables.
   *
   * @param name of the lane
   * @param cancelCheck is called during waits, and throws if the output is no longer needed
   */
  GpuUnits(DeviceExchange device, GpuTables tables, int ranks, String name, Runnable cancelCheck) {
    this.device = device;
    this.tables = tables;
    this.ranks = ranks;
    this.cancelCheck = cancelCheck;
    this.uploads = device.gpu().uploads(name);
    this.units = new DeviceUnits(device, ranks, cancelCheck);
  }

  /**
   * Uploads a chunk and starts to split it. The chunk's memory can be reused when this returns.
   *
   * @param places the rank of each row, if the device does not hash them
   */
  void add(ChunkView chunk, int[] places) {
    TableLayout layout = tables.layout(chunk.rows());
    CudaMemory memory = device.take(Math.max(TableLayout.ALIGNMENT, layout.bytes()), cancelCheck);
    try (memory) {
      Event uploaded =
          uploads.upload("the upload of " + layout, tables.runs(chunk, layout), memory);
      DeviceTable table = DeviceTable.view(memory, 0, layout, uploaded);
      try (PendingPartitions pending = split(table, places)) {
        units.pack(pending, layout.bytes());
      }
      uploaded.awaitRecorded(device.deadline());
    }
  }

  private PendingPartitions split(DeviceTable table, int[] places) {
    if (tables.isHashed()) {
      return device.partitioner().byHash(uploads.lane(), table, tables.keys(), ranks);
    }
    long length = 4L * table.rows();
    try (Tensor host = Tensor.allocate(TensorType.of(DataType.INT32, table.rows()));
        CudaMemory ids = device.take(length, cancelCheck)) {
      for (int row = 0; row < table.rows(); row++) {
        Memory.putInt(host.address() + 4L * row, places[row]);
      }
      Event uploaded =
          uploads.upload(
              "the upload of ranks",
              List.of(new DeviceUploads.Run(host.address(), 0, length)),
              ids);
      uploaded.awaitRecorded(device.deadline());
      return device.partitioner().byIds(uploads.lane(), table, ids, ranks, uploaded);
    }
  }

  /** Returns all blocks; the caller owns them. */
  List<DeviceOutput.Unit> finish() {
    return units.finish();
  }

  /** Rows of each rank; valid after {@link #finish}. */
  int[] rows() {
    return Arrays.stream(units.rows()).mapToInt(Math::toIntExact).toArray();
  }

  /** Bytes of each rank. */
  long[] bytes() {
    return units.bytes();
  }

  /** Frees the blocks that were not finished. Idempotent. */
  @Override
  public void close() {
    uploads.close();
    units.close();
  }
}
