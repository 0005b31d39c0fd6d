package io.weft.spark.gpu;

import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.DeviceTiers;
import io.weft.device.cuda.NoRoomException;
import io.weft.table.Concatenation;
import io.weft.table.TableConcatenator;
import io.weft.table.TableLayout;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has small tables that a task reads put together on the device, where there is room for that:
 * nobody waits for it, as it would be with memory in hands that others wait for. Thread-safe; owns
 * a lane.
 */
final class SmallTables implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SmallTables.class);

  /** Columns of tables: what the device is told of each takes 64 bytes. */
  private static final long MOST_PIECES = 1 << 14;

  private final DeviceTiers tiers;
  private final long unitBytes;
  private final TableConcatenator concatenator;
  private final CudaLane lane;

  private SmallTables(
      DeviceTiers tiers, long unitBytes, TableConcatenator concatenator, CudaLane lane) {
    this.tiers = tiers;
    this.unitBytes = unitBytes;
    this.concatenator = concatenator;
    this.lane = lane;
  }

  /**
   * Loads the kernels.
   *
   * @param tiers whose memory tables are made in
   * @param unitBytes of a table that is large enough
   */
  static SmallTables open(OpenedGpu gpu, DeviceTiers tiers, long unitBytes, Duration patience) {
    TableConcatenator concatenator = TableConcatenator.open(tiers.memory(), gpu.pinned());
    try {
      CudaLane lane = CudaLane.open(gpu.device(), "small tables", patience, Priority.NORMAL);
      return new SmallTables(tiers, unitBytes, concatenator, lane);
    } catch (RuntimeException e) {
      concatenator.close();
      throw e;
    }
  }

  /** Whether so many bytes are enough for a table. */
  boolean isEnough(long bytes) {
    return bytes >= unitBytes;
  }

  /**
   * How many of the tables that come next make one: 1 where the first is large as it is, or alone.
   *
   * @param layouts one at least
   */
  int together(Iterator<TableLayout> layouts) {
    int tables = 0;
    long bytes = 0;
    long pieces = 0;
    while (layouts.hasNext()) {
      TableLayout next = layouts.next();
      bytes += next.bytes();
      pieces += next.columns().size();
      boolean isLarge = next.bytes() > unitBytes / 2;
      if (tables > 0 && (isLarge || bytes > unitBytes || pieces > MOST_PIECES)) {
        break;
      }
      tables++;
      if (isLarge) {
        break;
      }
    }
    return tables;
  }

  /**
   * Starts to put tables together; blocks give way once.
   *
   * @return nothing where there is no room for it now
   */
  Optional<Concatenation> start(List<TableLayout> layouts) {
    try {
      return Optional.of(concatenator.start(lane, layouts));
    } catch (NoRoomException | CudaException e) {
      return isFull(e) ? startAgain(layouts) : Optional.empty();
    }
  }

  private Optional<Concatenation> startAgain(List<TableLayout> layouts) {
    try {
      if (tiers.spill(TableConcatenator.layout(layouts).bytes()) > 0) {
        return Optional.of(concatenator.start(lane, layouts));
      }
    } catch (IllegalStateException | CudaException e) {
      LOG.debug("{} tables are read one by one: {}", layouts.size(), e.getMessage());
    }
    return Optional.empty();
  }

  /** Whether there may be room later. */
  static boolean isFull(RuntimeException e) {
    return e instanceof NoRoomException
        || (e instanceof CudaException cuda && cuda.isOutOfMemory());
  }

  /** Waits for what is under way. */
  @Override
  public void close() {
    lane.close();
    concatenator.close();
  }
}
