package io.weft.spark.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.deviceblocks.HostReadClient;
import io.weft.table.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayDeque;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Queue;

/**
 * Tables of another executor's blocks, copied to this host one by one: for executors without a GPU,
 * and for blocks that do not fit on one. For one task thread.
 */
final class HostTables implements TableFetch {
  private final String executor;
  private final Queue<DeviceBlock> blocks;
  private final Runnable cancelCheck;
  private final HostReadClient client = ExecutorGpu.current().hostReads();
  private final Queue<TableLayout> layouts = new ArrayDeque<>();
  private DeviceBlock block;
  private int table;

  HostTables(String executor, List<DeviceBlock> blocks, Runnable cancelCheck) {
    this.executor = executor;
    this.blocks = new ArrayDeque<>(blocks);
    this.cancelCheck = cancelCheck;
  }

  @Override
  public boolean hasNext() throws DeviceFetchException {
    while (layouts.isEmpty() && !blocks.isEmpty()) {
      cancelCheck.run();
      block = blocks.peek();
      table = 0;
      try {
        layouts.addAll(client.tables(executor, block));
        blocks.remove(); // Advance only now: a failed read is not the end of the data.
      } catch (InterruptedException e) {
        throw interrupted(e);
      }
    }
    return !layouts.isEmpty();
  }

  @Override
  public FetchedTable next() throws DeviceFetchException {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more tables");
    }
    TableLayout layout = layouts.peek();
    Tensor copy = Tensor.allocate(TensorType.of(DataType.INT8, layout.bytes()));
    boolean copied = false;
    try {
      client.read(executor, block, table, layout, copy.address());
      copied = true;
      table++;
      layouts.remove();
      return FetchedTable.onHost(layout, copy);
    } catch (InterruptedException e) {
      throw interrupted(e);
    } finally {
      if (!copied) {
        copy.close();
      }
    }
  }

  private IllegalStateException interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    cancelCheck.run();
    return new IllegalStateException(
        "interrupted while reading blocks of the GPU of executor " + executor, e);
  }

  @Override
  public void close() {
    blocks.clear();
    layouts.clear();
  }
}
