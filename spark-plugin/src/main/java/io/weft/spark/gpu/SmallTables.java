package io.weft.spark.gpu;

import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemoryPool;
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

  /** Where rows are split again a row takes up to 24 bytes, and a task has room for 4 units. */
  private static final long UNIT_OF_ROW = 6;

  private final long unitBytes;
  private final TableConcatenator concatenator;
  private final CudaLane lane;

  private SmallTables(long unitBytes, TableConcatenator concatenator, CudaLane lane) {
    this.unitBytes = unitBytes;
    this.concatenator = concatenator;
    this.lane = lane;
  }

  /**
   * Loads the kernels.
   *
   * @param memory that tables are made in
   * @param unitBytes of a table that is large enough
   */
  static SmallTables open(OpenedGpu gpu, CudaMemoryPool memory, long unitBytes, Duration patience) {
    TableConcatenator concatenator = TableConcatenator.open(memory, gpu.pinned());
    try {
      CudaLane lane = CudaLane.open(gpu.device(), "small tables", patience, Priority.NORMAL);
      return new SmallTables(unitBytes, concatenator, lane);
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
    long rows = 0;
    long pieces = 0;
    while (layouts.hasNext()) {
      TableLayout next = layouts.next();
      bytes += next.bytes();
      rows += next.rows();
      pieces += next.columns().size();
      boolean isLarge = next.bytes() > unitBytes / 2;
      if (tables > 0 && (isLarge || isTooMuch(bytes, rows, pieces))) {
        break;
      }
      tables++;
      if (isLarge) {
        break;
      }
    }
    return tables;
  }

  private boolean isTooMuch(long bytes, long rows, long pieces) {
    return bytes > unitBytes || rows > unitBytes / UNIT_OF_ROW || pieces > MOST_PIECES;
  }

  /**
   * Starts to put tables together. Blocks do not give way for that: they may be the very ones that
   * are read next, and can be read where they lie.
   *
   * @return nothing where there is no room for it now
   */
  Optional<Concatenation> start(List<TableLayout> layouts) {
    try {
      return Optional.of(concatenator.start(lane, layouts));
    } catch (NoRoomException | CudaException e) {
      sayApart(layouts.size(), e);
      return Optional.empty();
    }
  }

  /** Says why tables are read one by one: a lack of room is nothing to warn of. */
  static void sayApart(int tables, RuntimeException why) {
    boolean isFull =
        why instanceof NoRoomException
            || (why instanceof CudaException cuda && cuda.isOutOfMemory());
    if (isFull) {
      LOG.debug("{} tables are read one by one: {}", tables, why.getMessage());
    } else {
      LOG.warn("{} tables are read one by one, as they could not be put together", tables, why);
    }
  }

  /** Waits for what is under way. */
  @Override
  public void close() {
    lane.close();
    concatenator.close();
  }
}
