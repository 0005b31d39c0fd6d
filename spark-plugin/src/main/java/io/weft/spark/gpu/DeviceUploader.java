package io.weft.spark.gpu;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.device.cuda.DeviceUploads.Run;
import io.weft.memory.Memory;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.columns.BlockColumnVector;
import io.weft.spark.columns.ChunkBuilder;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.columns.FittingRows;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes device tables from batches on the host. Gathers rows in their order up to an efficient size
 * for a copy; only a single large row can make a larger table. For one task thread.
 */
public final class DeviceUploader implements AutoCloseable {
  private static final int MAX_ROWS = 1 << 22;

  /** Rows measured at first; the number doubles each time that all of them fit. */
  private static final int FIRST_ROWS = 64;

  private static final int MAX_STEP_ROWS = 1 << 12;

  private final DeviceExchange device;
  private final StructType schema;
  private final Runnable cancelCheck;
  private final Consumer<DeviceTable> consumer;
  private final String name;
  private final ChunkBuilder builder;
  private final FittingRows ahead;
  private final boolean hasTensors;

  /** Opened with the first table. */
  private DeviceUploads uploads;

  private int stepRows = FIRST_ROWS;

  /** Measured size of the gathered rows, including null tensors: those have no bytes in a chunk. */
  private long gatheredBytes;

  /** Number of rows in earlier tables. */
  private long uploadedRows;

  /**
   * Starts without rows.
   *
   * @param schema of the batches, without an {@link TableTypes#obstacle}
   * @param name of its lane
   * @param cancelCheck is called during waits for memory, and throws if the tables are no longer
   *     needed
   * @param consumer takes ownership of each table, on the calling thread
   */
  public DeviceUploader(
      DeviceExchange device,
      StructType schema,
      String name,
      Runnable cancelCheck,
      Consumer<DeviceTable> consumer) {
    this.device = device;
    this.schema = schema;
    this.cancelCheck = cancelCheck;
    this.consumer = consumer;
    this.name = name;
    this.builder = new ChunkBuilder(schema, device.arena(), this::upload);
    long[] tensorBytes = tensorBytes(schema);
    this.hasTensors = Arrays.stream(tensorBytes).anyMatch(bytes -> bytes > 0);
    this.ahead = new FittingRows(schema, tensorBytes);
  }

  /** Bytes of a row of each tensor column, null or not; 0 for other columns. */
  private static long[] tensorBytes(StructType schema) {
    return Arrays.stream(schema.fields())
        .map(field -> TableTypes.column(field, true).orElseThrow())
        .mapToLong(column -> column.kind() == ColumnKind.TENSOR ? column.width() : 0)
        .toArray();
  }

  /**
   * Appends rows of a batch: at most as many as fill one table, by sizes measured beforehand. The
   * batch must not change until all of its rows are appended.
   *
   * @param first first row that is not appended yet
   * @return the next row to append; {@code first} if a full table was passed on instead
   * @throws IOException if there is no host memory to gather the rows
   * @throws IllegalArgumentException if a tensor does not have the shape that its column declares
   */
  public int append(ColumnarBatch batch, int first) throws IOException {
    int most = Math.min(stepRows, Math.min(MAX_ROWS - builder.rows(), batch.numRows() - first));
    long room = device.unitBytes() - bytes();
    int count = ahead.fitting(batch, first, most, room);
    stepRows = Math.max(1, Math.min(MAX_STEP_ROWS, 2 * count));
    if (count == 0 && builder.rows() > 0) {
      builder.flush();
      return first;
    }
    int appended = Math.max(1, count);
    builder.append(batch, first, appended);
    gatheredBytes += ahead.bytes();
    if (builder.rows() >= MAX_ROWS || bytes() >= device.unitBytes()) {
      builder.flush();
    }
    return first + appended;
  }

  /** Size of the table that the gathered rows make. */
  private long bytes() {
    if (builder.rows() == 0) {
      return 0;
    }
    return hasTensors ? Math.max(builder.bytes(), gatheredBytes) : builder.bytes();
  }

  /** Makes a table of the remaining rows, if there are any. */
  public void flush() throws IOException {
    builder.flush();
  }

  private void upload(ChunkView chunk) {
    InputPosition place = new InputPosition(TaskContext.getPartitionId(), uploadedRows);
    uploadedRows += chunk.rows();
    gatheredBytes = 0;
    try (UploadRuns runs = UploadRuns.of(chunk, schema, place)) {
      TableLayout layout = runs.layout();
      CudaMemory memory = device.take(Math.max(TableLayout.ALIGNMENT, layout.bytes()), cancelCheck);
      boolean made = false;
      try {
        Event uploaded = lane().upload("the upload of " + layout, runs.runs(), memory);
        uploaded.awaitRecorded(device.deadline()); // The chunk is freed when this returns.
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

  /** Waits for the lane and drops gathered rows. Idempotent. */
  @Override
  public void close() {
    if (uploads != null) {
      uploads.close();
    }
    builder.close();
  }

  /**
   * The position of checked rows in a task's input, for error messages. Immutable.
   *
   * @param partition of the input
   * @param first number of rows of it that were uploaded before; rows that were already on the
   *     device do not count
   */
  record InputPosition(int partition, long first) {
    /** Makes the error for a value that does not match its column's shape. */
    IllegalArgumentException mismatch(String column, int row, String found, TensorType type) {
      return new IllegalArgumentException(
          "column %s, uploaded row %d of input partition %d: %s is not %s"
              .formatted(column, first + row, partition, found, type));
    }
  }

  /**
   * The sections of a table as runs of a chunk. Most are used in place. Booleans are converted from
   * bits to bytes, and tensor columns with nulls are copied, because nulls have no values in a
   * chunk. Owns these copies. Immutable.
   *
   * @param layout of the table; columns without nulls have no validity
   * @param runs in the order of their offsets
   * @param scratch the copies
   */
  record UploadRuns(TableLayout layout, List<Run> runs, List<Tensor> scratch)
      implements AutoCloseable {

    /**
     * Finds the sections of a chunk with rows. The chunk must stay valid as long as the result.
     *
     * @param place of the rows, for errors
     * @throws IllegalArgumentException if a tensor does not have the shape that its column declares
     */
    static UploadRuns of(ChunkView chunk, StructType schema, InputPosition place) {
      UploadRuns made =
          new UploadRuns(layoutOf(chunk, schema), new ArrayList<>(), new ArrayList<>());
      try {
        for (int c = 0; c < chunk.columns(); c++) {
          made.add(c, chunk.column(c), schema.fields()[c].name(), place);
        }
        return made;
      } catch (RuntimeException | Error e) {
        made.close();
        throw e;
      }
    }

    private static TableLayout layoutOf(ChunkView chunk, StructType schema) {
      List<TableColumn> columns = new ArrayList<>();
      long[] strings = new long[chunk.columns()];
      for (int c = 0; c < chunk.columns(); c++) {
        BlockColumnVector column = chunk.column(c);
        TableColumn type = TableTypes.column(schema.fields()[c], column.hasNull()).orElseThrow();
        columns.add(type);
        strings[c] = type.kind().isString() ? column.offset(chunk.rows()) - column.offset(0) : 0;
      }
      return TableLayout.of(columns, chunk.rows(), strings);
    }

    private void add(int c, BlockColumnVector column, String name, InputPosition place) {
      TableColumn type = layout.columns().get(c);
      int rows = layout.rows();
      if (type.nullable()) {
        runs.add(new Run(column.validity(), layout.validity(c), (rows + 7L) / 8));
      }
      if (type.kind().isString()) {
        runs.add(new Run(column.offsets(), layout.offsets(c), (rows + 1L) * Integer.BYTES));
      }
      long values =
          switch (type.kind()) {
            case BOOLEAN -> bytes(column);
            case TENSOR -> tensors(new TensorRows(column, type.tensor(), rows), name, place);
            default -> column.values();
          };
      runs.add(new Run(values, layout.data(c), layout.dataBytes(c)));
    }

    private long tensors(TensorRows tensors, String name, InputPosition place) {
      tensors.verify(name, place);
      if (tensors.areDense()) {
        return tensors.values();
      }
      Tensor made = tensors.spread();
      scratch.add(made);
      return made.address();
    }

    private long bytes(BlockColumnVector booleans) {
      Tensor made = Tensor.allocate(TensorType.of(DataType.INT8, layout.rows()));
      scratch.add(made);
      for (int row = 0; row < layout.rows(); row++) {
        Memory.putByte(made.address() + row, (byte) (booleans.getBoolean(row) ? 1 : 0));
      }
      return made.address();
    }

    @Override
    public void close() {
      scratch.forEach(Tensor::close);
    }
  }

  /**
   * The rows of a tensor column in a chunk: verifies their shape and finds them as one run. For one
   * thread.
   */
  static final class TensorRows {
    private final BlockColumnVector column;
    private final TensorType row;
    private final int rows;
    private final boolean isBinary;

    /**
     * Wraps rows that are not verified yet.
     *
     * @param row the type of each row that is not null
     */
    TensorRows(BlockColumnVector column, TensorType row, int rows) {
      this.column = column;
      this.row = row;
      this.rows = rows;
      this.isBinary = column.dataType() instanceof BinaryType;
    }

    /**
     * Verifies that all rows that are not null have the declared type.
     *
     * @param name of the column
     * @param place of the rows, for the error
     * @throws IllegalArgumentException naming column, row and both shapes
     */
    void verify(String name, InputPosition place) {
      int wanted = isBinary ? Math.toIntExact(row.bytes()) : Math.toIntExact(row.elements());
      for (int i = 0; i < rows; i++) {
        int found = column.offset(i + 1) - column.offset(i);
        if (found != wanted && !column.isNullAt(i)) {
          throw place.mismatch(name, i, text(found), row);
        }
      }
      if (!isBinary && column.getChild(0).hasNull()) {
        verifyElements(name, place);
      }
    }

    private void verifyElements(String name, InputPosition place) {
      BlockColumnVector elements = column.getChild(0);
      for (int i = 0; i < rows; i++) {
        int start = column.offset(i);
        for (int at = start; at < column.offset(i + 1); at++) {
          if (elements.isNullAt(at)) {
            String found = "shape [%d] with a null at %d".formatted(row.elements(), at - start);
            throw place.mismatch(name, i, found, row);
          }
        }
      }
    }

    private String text(int found) {
      int width = row.dtype().bytes();
      if (!isBinary) {
        return "shape [" + found + "]";
      }
      return found % width == 0 ? "shape [" + found / width + "]" : found + " bytes";
    }

    /** Returns whether the values are contiguous, from {@link #values} on: none is null. */
    boolean areDense() {
      return !column.hasNull();
    }

    /** Address of the first row's values. */
    long values() {
      return isBinary
          ? column.values() + column.offset(0)
          : column.getChild(0).values() + (long) row.dtype().bytes() * column.offset(0);
    }

    /** Copies the values, with zeros for null rows, which have no values in a chunk. */
    Tensor spread() {
      Tensor made = Tensor.allocate(TensorType.of(DataType.INT8, row.bytes() * rows));
      long from = values();
      for (int i = 0; i < rows; i++) {
        if (!column.isNullAt(i)) {
          Memory.copy(from, made.address() + i * row.bytes(), row.bytes());
          from += row.bytes();
        }
      }
      return made;
    }
  }
}
