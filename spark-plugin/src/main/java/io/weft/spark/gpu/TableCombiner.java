package io.weft.spark.gpu;

import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.NoRoomException;
import io.weft.shuffle.device.Concatenation;
import io.weft.shuffle.device.TableConcatenator;
import io.weft.shuffle.device.TableLayout;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Combines small tables that a task reads on the device, if there is room for the result. It never
 * waits for room, because tasks that hold memory could then wait for each other. Thread-safe; owns
 * a lane.
 */
final class TableCombiner implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TableCombiner.class);

  /** Limit of column pieces: the device needs a descriptor of 64 bytes for each. */
  private static final long MAX_PIECES = 1 << 14;

  /** A row takes up to 24 bytes when rows are split again, and a task has room for 4 units. */
  private static final long UNIT_OF_ROW = 6;

  private final long unitBytes;
  private final TableConcatenator concatenator;
  private final CudaLane lane;

  private TableCombiner(long unitBytes, TableConcatenator concatenator, CudaLane lane) {
    this.unitBytes = unitBytes;
    this.concatenator = concatenator;
    this.lane = lane;
  }

  /**
   * Loads the kernels.
   *
   * @param memory for the combined tables
   * @param unitBytes size of a table that is large enough
   */
  static TableCombiner open(
      SharedGpu gpu, CudaMemoryPool memory, long unitBytes, Duration timeout) {
    TableConcatenator concatenator = TableConcatenator.open(memory, gpu.pinned());
    try {
      CudaLane lane = CudaLane.open(gpu.device(), "small tables", timeout, Priority.NORMAL);
      return new TableCombiner(unitBytes, concatenator, lane);
    } catch (RuntimeException e) {
      concatenator.close();
      throw e;
    }
  }

  /** Returns whether a table of this size is large enough. */
  boolean isEnough(long bytes) {
    return bytes >= unitBytes;
  }

  /**
   * Returns how many of the next tables to combine: 1 if the first is large enough, or the only
   * one.
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
    return bytes > unitBytes || rows > unitBytes / UNIT_OF_ROW || pieces > MAX_PIECES;
  }

  /**
   * Starts to combine tables. It does not spill blocks to make room: they may be the ones that are
   * read next, and can be read in place.
   *
   * @return empty if there is no room now
   */
  Optional<Concatenation> start(List<TableLayout> layouts) {
    try {
      return Optional.of(concatenator.start(lane, layouts));
    } catch (NoRoomException | CudaException e) {
      logSeparate(layouts.size(), e);
      return Optional.empty();
    }
  }

  /** Logs why tables are read one by one: a warning, unless it is only a lack of room. */
  static void logSeparate(int tables, RuntimeException why) {
    boolean isFull =
        why instanceof NoRoomException
            || (why instanceof CudaException cuda && cuda.isOutOfMemory());
    if (isFull) {
      LOG.debug("{} tables are read one by one: {}", tables, why.getMessage());
    } else {
      LOG.warn("{} tables are read one by one, as they could not be combined", tables, why);
    }
  }

  /** Waits for work in flight. */
  @Override
  public void close() {
    lane.close();
    concatenator.close();
  }
}
