package io.weft.examples.train;

import io.weft.collectives.buffer.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A column of arrays, and maybe one of labels, out of a Parquet file into memory: what a trainer
 * does that is handed its data as files. Read by Spark's own vectorised reader. For one thread.
 */
public final class ParquetRows implements AutoCloseable {
  private static final int READ_ROWS = 4096;

  private final int width;
  private final List<Tensor> features = new ArrayList<>();
  private final List<Tensor> labels = new ArrayList<>();
  private long rows;
  private long copiedBytes;

  /** Nothing yet; rows of this many floats. */
  public ParquetRows(int width) {
    this.width = width;
  }

  /** The Parquet files of a folder by name, one for each rank. */
  public static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(file -> file.toString().endsWith(".parquet")).sorted().toList();
    }
  }

  /**
   * Reads a whole file.
   *
   * @param labelColumn an int column, or null
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
    long rowBytes = 4L * width;
    Tensor block = Tensor.allocate(TensorType.of(DataType.FLOAT32, n, width));
    features.add(block);
    for (int row = 0; row < n; row++) {
      float[] values = batch.column(0).getArray(row).toFloatArray();
      if (values.length != width) {
        throw new IllegalStateException(
            "row " + (rows + row) + " has " + values.length + " floats instead of " + width);
      }
      Memory.copyFrom(values, Memory.FLOAT_ARRAY, block.address() + row * rowBytes, rowBytes);
    }
    if (labelled) {
      Tensor classes = Tensor.allocate(TensorType.of(DataType.INT32, n));
      labels.add(classes);
      for (int row = 0; row < n; row++) {
        Memory.putInt(classes.address() + 4L * row, batch.column(1).getInt(row));
      }
    }
    rows += n;
    // Out of the reader's columns into an array, and from there into memory.
    copiedBytes += 2L * n * rowBytes;
  }

  public long rows() {
    return rows;
  }

  /** Bytes copied by reading, after decoding. */
  public long copiedBytes() {
    return copiedBytes;
  }

  /** The rows' floats in blocks, each [rows, width]; they belong to this. */
  public List<Tensor> blocks() {
    return List.copyOf(features);
  }

  /** Copies one row's floats. */
  public void copyRow(long row, long to) {
    Memory.copy(address(features, row, 4L * width), to, 4L * width);
  }

  /** One row's label. */
  public int label(long row) {
    return Memory.getInt(address(labels, row, 4));
  }

  /** Blocks differ in size where row groups end. */
  private static long address(List<Tensor> blocks, long row, long rowBytes) {
    long left = row;
    for (Tensor block : blocks) {
      long count = block.type().dimension(0);
      if (left < count) {
        return block.address() + left * rowBytes;
      }
      left -= count;
    }
    throw new IndexOutOfBoundsException("no row " + row);
  }

  @Override
  public void close() {
    features.forEach(Tensor::close);
    labels.forEach(Tensor::close);
  }
}
