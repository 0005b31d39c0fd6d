package io.weft.spark.feed;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.DeviceUploads;
import io.weft.memory.Memory;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.PartitionedTable;
import io.weft.shuffle.device.PendingPartitions;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.FeedRows.ShuffleOrder;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.TableTypes;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * The columns of a feed as device tables: its numbers and its tensors of fixed shape, none of them
 * with nulls. Immutable.
 */
final class GpuTables {
  /** A shuffle's unit may take this part of the device memory, if that is more than a unit. */
  private static final long SHARES = 256;

  private final List<GpuBatchLayout.Place> places;
  private final List<TableColumn> columns;

  private GpuTables(List<GpuBatchLayout.Place> places) {
    this.places = places;
    this.columns = places.stream().map(place -> type(place.column())).toList();
  }

  /** Creates the tables of a feed between GPUs. */
  static GpuTables of(FeedSpec spec) {
    return new GpuTables(GpuBatchLayout.of(spec).columns());
  }

  private static TableColumn type(TensorColumn column) {
    return column.source() == TensorColumn.Source.NUMBER
        ? TableColumn.of(kind(column.dtype()), false)
        : TableColumn.tensors(TensorType.of(column.dtype(), column.shape()), false);
  }

  private static ColumnKind kind(DataType dtype) {
    return switch (dtype) {
      case INT8 -> ColumnKind.BYTE;
      case INT16 -> ColumnKind.SHORT;
      case INT32 -> ColumnKind.INT;
      case INT64 -> ColumnKind.LONG;
      case FLOAT32 -> ColumnKind.FLOAT;
      case FLOAT64 -> ColumnKind.DOUBLE;
      default -> throw new IllegalArgumentException("a Spark number is never a " + dtype);
    };
  }

  /**
   * Returns the numbers of the keys in these tables, for devices to hash; none if the feed has no
   * keys, or if a key is not one of its numbers.
   *
   * @param numbers of the keys in the feed
   */
  int[] keys(List<Integer> numbers) {
    List<Integer> places = IntStream.of(ordinals()).boxed().toList();
    boolean canHash =
        numbers.stream()
            .map(places::indexOf)
            .allMatch(
                place ->
                    place >= 0
                        && this.places.get(place).column().source() == TensorColumn.Source.NUMBER);
    return canHash ? numbers.stream().mapToInt(places::indexOf).toArray() : new int[0];
  }

  /**
   * Starts to upload numbers of 4 bytes. The host memory of the upload is freed when it ends, also
   * if nothing waits for it.
   *
   * @param count of the first numbers, which are uploaded
   */
  static Event upload(DeviceUploads lane, String what, int[] numbers, int count, CudaMemory there) {
    Tensor host = Tensor.allocate(TensorType.of(DataType.INT32, count));
    Event uploaded;
    try {
      for (int i = 0; i < count; i++) {
        Memory.putInt(host.address() + 4L * i, numbers[i]);
      }
      uploaded =
          lane.upload(what, List.of(new DeviceUploads.Run(host.address(), 0, 4L * count)), there);
    } catch (RuntimeException e) {
      host.close();
      throw e;
    }
    uploaded.whenReleased(host::close);
    return uploaded;
  }

  /**
   * Why map tasks cannot deal batches of a query on the device; empty if they can. The feed itself
   * can be on devices.
   *
   * @param keys numbers of the keys in the feed
   */
  static Optional<String> inputObstacle(FeedSpec spec, List<Integer> keys) {
    for (int key : keys) {
      if (!TableTypes.isKey(spec.schema().fields()[key])) {
        return Optional.of("no GPU hashes key " + spec.schema().fields()[key].name());
      }
    }
    for (TensorColumn column : TensorCheck.columns(spec.schema())) {
      if (!column.fixed()) {
        return Optional.of("the shape of column " + column.name() + " is checked on the host");
      }
    }
    if (spec.seed().isEmpty()) {
      return Optional.empty();
    }
    if (rowBytes(spec).isEmpty()) {
      return Optional.of("the feed is shuffled and the bytes of its rows vary");
    }
    return spec.byKey() && of(spec).keys(keys).length == 0
        ? Optional.of("the feed is shuffled and a key is not one of its numbers")
        : Optional.empty();
  }

  /**
   * Bytes of an UnsafeRow of the feed, with its rank if there are keys; empty if they vary. Nulls
   * do not count: fed columns have none, and others are within the row.
   */
  private static OptionalLong rowBytes(FeedSpec spec) {
    List<TensorColumn> tensors = TensorCheck.columns(spec.schema());
    int fields = spec.schema().size() + (spec.byKey() ? 1 : 0);
    long bytes = bits(fields) + 8L * fields;
    for (int i = 0; i < spec.schema().size(); i++) {
      int ordinal = i;
      Optional<TensorColumn> tensor =
          tensors.stream().filter(column -> column.ordinal() == ordinal).findFirst();
      if (tensor.isPresent()) {
        bytes += variableBytes(tensor.get());
      } else if (!UnsafeRow.isFixedLength(spec.schema().fields()[i].dataType())) {
        return OptionalLong.empty();
      }
    }
    return OptionalLong.of(bytes);
  }

  /** Bytes of a value behind the fields of its row. */
  private static long variableBytes(TensorColumn column) {
    long elements = column.elements();
    long values = (elements * column.dtype().bytes() + 7) & -8;
    return switch (column.source()) {
      case NUMBER -> 0;
      case ARRAY -> 8 + bits(elements) + values;
      default -> values;
    };
  }

  /** Bytes of one bit for each field or element, in words. */
  private static long bits(long count) {
    return (count + 63) / 64 * 8;
  }

  /** Numbers of the columns in a table with all columns of the feed. */
  int[] ordinals() {
    return places.stream().mapToInt(place -> place.column().ordinal()).toArray();
  }

  /**
   * Whether a batch of a query has these columns without nulls. The validity bits of nullable
   * columns are copied to the host.
   */
  boolean areIn(DeviceBatch batch) {
    List<TableColumn> found = batch.table().layout().columns();
    int[] ordinals = ordinals();
    for (int c = 0; c < ordinals.length; c++) {
      int ordinal = ordinals[c];
      if (ordinal >= found.size()
          || found.get(ordinal).kind() != columns.get(c).kind()
          || !Objects.equals(found.get(ordinal).tensor(), columns.get(c).tensor())
          || batch.hasNulls(ordinal)) {
        return false;
      }
    }
    return true;
  }

  /** The layout of a table with this number of rows. */
  TableLayout layout(int rows) {
    return TableLayout.fixed(columns, rows);
  }

  /**
   * Returns the runs of a chunk to upload.
   *
   * @throws IllegalStateException if a value is null
   */
  List<DeviceUploads.Run> runs(ChunkView chunk, TableLayout layout) {
    List<DeviceUploads.Run> runs = new ArrayList<>();
    for (int c = 0; c < places.size(); c++) {
      long values = places.get(c).column().in(chunk).buffer().address();
      runs.add(new DeviceUploads.Run(values, layout.data(c), layout.dataBytes(c)));
    }
    return runs;
  }

  /**
   * Gathers the rows of tables on the device in units of full batches, so that a batch is not
   * split. If the feed is shuffled, it also draws the order of the rows, as {@link
   * FeedRows.ShuffleBuffer} does on the host. For one task thread; owns the memory of a unit.
   */
  static final class UnitGather implements AutoCloseable {
    /** Bytes of the three numbers that order a row. */
    private static final long NUMBERS_BYTES = 12;

    private final DeviceExchange device;
    private final GpuTables tables;
    private final int batchRows;
    private final DeviceUploads lane;
    private final Runnable cancelCheck;
    private final Consumer<DeviceTable> target;
    private final int[] all;

    /** Null if the rows keep their order. */
    private final ShuffleOrder order;

    private final int capacity;
    private CudaMemory unit;
    private TableLayout layout;
    private Event written;
    private int rows;

    /** Rows of the unit that have their order. */
    private int ordered;

    /** Ordered rows that were not passed on. */
    private int[] drawn = {};

    private int drawnRows;

    /**
     * Starts without rows. Takes no memory before the first one.
     *
     * @param unitRows rows of a unit, full batches
     * @param lane of the copies
     * @param cancelCheck is called during waits, and throws if the output is no longer needed
     * @param target uses each unit until it returns; later work on the lane comes behind
     */
    UnitGather(
        DeviceExchange device,
        FeedSpec spec,
        int unitRows,
        DeviceUploads lane,
        Runnable cancelCheck,
        Consumer<DeviceTable> target) {
      this.device = device;
      this.tables = GpuTables.of(spec);
      this.batchRows = spec.batchRows();
      this.lane = lane;
      this.cancelCheck = cancelCheck;
      this.target = target;
      this.all = IntStream.range(0, tables.columns.size()).toArray();
      this.order =
          spec.seed().isEmpty()
              ? null
              : new ShuffleOrder(
                  spec, TaskContext.getPartitionId(), rowBytes(spec).orElseThrow(), this::draw);
      // Behind the kept rows there is always room for full batches.
      long most = order == null ? 0 : 2L * (order.most() + (long) batchRows);
      this.capacity = (int) Math.min(TableLayout.MAX_ROWS, Math.max(unitRows, most));
    }

    private void draw(int row) {
      if (drawnRows == drawn.length) {
        drawn = Arrays.copyOf(drawn, Math.max(batchRows, 2 * drawnRows));
      }
      drawn[drawnRows++] = row;
    }

    /**
     * Whether the memory of the device is large enough to shuffle there, beside 63 other tasks: a
     * unit is copied three times.
     */
    boolean hasRoom() {
      long most = Math.max(device.unitBytes(), device.tiers().memory().budgetBytes() / SHARES);
      return order == null || tables.layout(capacity).bytes() <= most;
    }

    /**
     * Adds the rows of a table, and passes on full units. The table can be closed when this
     * returns.
     *
     * @param columns numbers of the feed's columns in the table
     */
    void add(DeviceTable table, int... columns) {
      int done = 0;
      while (done < table.rows()) {
        if (unit == null) {
          begin(capacity);
        }
        int count = Math.min(layout.rows() - rows, table.rows() - done);
        copy(table, columns, done, count);
        done += count;
        if (rows == capacity) {
          pass(false);
        }
      }
    }

    /** Adds the rows of a table whose columns are the feed's. */
    void add(DeviceTable table) {
      add(table, all);
    }

    private void begin(int most) {
      layout = tables.layout(most);
      unit = device.take(Math.max(TableLayout.ALIGNMENT, layout.bytes()), cancelCheck);
      written = HostEvent.completed("a unit without rows");
      rows = 0;
    }

    /** Behind the copies before: if one of them fails, so does the unit. */
    private void copy(DeviceTable table, int[] columns, int first, int count) {
      CudaStream stream = lane.lane().stream();
      TableLayout source = table.layout();
      TableLayout to = layout;
      long from = table.address();
      long start = unit.address();
      int at = rows;
      written =
          lane.lane()
              .submit(
                  "a copy of rows of " + table,
                  () -> {
                    for (int c = 0; c < columns.length; c++) {
                      long width = to.columns().get(c).width();
                      if (width > 0) {
                        stream.copyOnDevice(
                            start + to.data(c) + at * width,
                            from + source.data(columns[c]) + first * width,
                            count * width);
                      }
                    }
                  },
                  written,
                  table.ready());
      table.usedUntil(written);
      unit.usedUntil(written);
      rows += count;
    }

    /** Passes on the remaining rows. */
    void finish() {
      if (unit != null) {
        pass(true);
      }
    }

    /** Passes on the rows of the unit: all of them, or those that have their order. */
    private void pass(boolean isLast) {
      try (DeviceTable table = exact()) {
        if (order == null) {
          target.accept(table);
        } else {
          while (ordered < table.rows()) {
            order.add(ordered++);
          }
          if (isLast) {
            order.finish();
          }
          passOrdered(table, isLast ? drawnRows : drawnRows / batchRows * batchRows);
        }
      }
    }

    /** Returns the rows of the unit as a table, which owns the memory. */
    private DeviceTable exact() {
      if (rows < layout.rows()) {
        int count = rows;
        try (DeviceTable longer = ended()) {
          begin(count);
          copy(longer, all, 0, count);
        }
      }
      return ended();
    }

    private DeviceTable ended() {
      DeviceTable table = DeviceTable.of(unit, layout, written);
      unit = null;
      return table;
    }

    /** Passes on the first rows that were drawn. The others begin the next unit. */
    private void passOrdered(DeviceTable table, int passed) {
      int left = drawnRows - passed;
      try (PendingPartitions pending = split(table, passed);
          PartitionedTable parts =
              device.withRoom(table.bytes(), cancelCheck, () -> pending.pack(device.deadline()))) {
        target.accept(parts.table(0));
        drawnRows = 0;
        ordered = 0;
        if (passed < table.rows()) {
          begin(capacity);
          copy(parts.table(1), all, 0, table.rows() - passed);
          ordered = rows;
          IntStream.range(0, left).forEach(this::draw);
          order.renumber(left);
        }
      }
    }

    /** Splits into the passed rows, in their order, and the others: drawn ones, then kept ones. */
    private PendingPartitions split(DeviceTable table, int passed) {
      int[] kept = order.kept();
      int count = table.rows();
      int[] numbers = new int[3 * count];
      for (int i = 0; i < count; i++) {
        int row = i < drawnRows ? drawn[i] : kept[i - drawnRows];
        int part = i < passed ? 0 : 1;
        numbers[row] = part;
        numbers[count + i] = row;
        numbers[2 * count + i] = part;
      }
      try (CudaMemory there = device.take(NUMBERS_BYTES * count, cancelCheck)) {
        Event uploaded = upload(lane, "the upload of an order of rows", numbers, 3 * count, there);
        return device.withRoom(
            2 * NUMBERS_BYTES * count,
            cancelCheck,
            () -> device.partitioner().byOrder(lane.lane(), table, there, 2, uploaded));
      }
    }

    /** Frees the rows that were not passed on. Idempotent. */
    @Override
    public void close() {
      if (unit != null) {
        unit.close();
        unit = null;
      }
    }
  }
}
