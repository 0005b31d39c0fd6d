package io.weft.examples.train;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads a column of arrays, and optionally a column of labels, from a Parquet file into memory, as
 * a trainer does that gets its data as files. Uses Spark's vectorised reader. For one thread.
 */
public final class ParquetRows implements AutoCloseable {
  private static final int READ_ROWS = 4096;

  private final int width;

  /** Blocks by the number of their first row. */
  private final NavigableMap<Long, Tensor> features = new TreeMap<>();

  private final NavigableMap<Long, Tensor> labels = new TreeMap<>();
  private long rows;
  private long copiedBytes;

  /** Creates an empty set of rows with this number of floats each. */
  public ParquetRows(int width) {
    this.width = width;
  }

  /** Returns the Parquet files of a folder in the order of their names, one for each rank. */
  public static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(file -> file.toString().endsWith(".parquet")).sorted().toList();
    }
  }

  /**
   * Reads a whole file.
   *
   * @param labelColumn an int column; null for none
   */
  public void read(Path file, String featureColumn, String labelColumn) throws IOException {
    List<String> columns =
        labelColumn == null ? List.of(featureColumn) : List.of(featureColumn, labelColumn);
    try (VectorizedParquetRecordReader reader =
        new VectorizedParquetRecordReader(false, READ_ROWS)) {
      reader.initialize(file.toString(), columns);
      ColumnarBatch batch = reader.resultBatch();
      while (reader.nextBatch()) {
        take(batch, labelColumn != null);
      }
    }
  }

  private void take(ColumnarBatch batch, boolean labelled) {
    int n = batch.numRows();
    Tensor block = Tensor.allocate(TensorType.of(DataType.FLOAT32, n, width));
    features.put(rows, block);
    float[] values = floats((WritableColumnVector) batch.column(0), n);
    Memory.copyFrom(values, Memory.FLOAT_ARRAY, block.address(), block.type().bytes());
    if (labelled) {
      Tensor classes = Tensor.allocate(TensorType.of(DataType.INT32, n));
      labels.put(rows, classes);
      for (int row = 0; row < n; row++) {
        Memory.putInt(classes.address() + 4L * row, batch.column(1).getInt(row));
      }
    }
    rows += n;
    // Each byte is copied from the reader's column to an array, and from the array to memory.
    copiedBytes += 2 * block.type().bytes();
  }

  /** Returns all arrays of a column at once; they are contiguous. */
  private float[] floats(WritableColumnVector arrays, int n) {
    for (int row = 0; row < n; row++) {
      int length = arrays.isNullAt(row) ? 0 : arrays.getArrayLength(row);
      if (length != width || arrays.getArrayOffset(row) != row * width) {
        throw new IllegalStateException(
            "row " + (rows + row) + " has " + length + " floats instead of " + width);
      }
    }
    return arrays.arrayData().getFloats(0, n * width);
  }

  public long rows() {
    return rows;
  }

  /** Returns the bytes that reading copied after decoding. */
  public long copiedBytes() {
    return copiedBytes;
  }

  /** Returns the floats in blocks of shape [rows, width]; this object owns them. */
  public List<Tensor> blocks() {
    return List.copyOf(features.values());
  }

  /** Copies the floats of one row to an address. */
  public void copyRow(long row, long to) {
    Memory.copy(address(features, row, 4L * width), to, 4L * width);
  }

  /** Returns the label of one row. */
  public int label(long row) {
    return Memory.getInt(address(labels, row, 4));
  }

  private static long address(NavigableMap<Long, Tensor> blocks, long row, long rowBytes) {
    Map.Entry<Long, Tensor> block = blocks.floorEntry(row);
    if (block == null || row - block.getKey() >= block.getValue().type().dimension(0)) {
      throw new IndexOutOfBoundsException("no row " + row);
    }
    return block.getValue().address() + (row - block.getKey()) * rowBytes;
  }

  @Override
  public void close() {
    features.values().forEach(Tensor::close);
    labels.values().forEach(Tensor::close);
  }
}
