package io.weft.spark.feed;

import io.weft.device.cuda.DeviceUploads;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.List;

/**
 * The layout of a batch in GPU memory. Each column is one run that has room for a full batch and
 * starts at a multiple of 256 bytes. Immutable.
 *
 * @param batchRows rows of a full batch
 * @param columns the tensors of fixed shape, in the order of the feed
 * @param bytes of a batch, a multiple of 256
 */
record GpuBatchLayout(int batchRows, List<Place> columns, long bytes) {
  private static final long ALIGNMENT = 256;

  /** A column and its offset in bytes from the start of the batch. */
  record Place(TensorColumn column, long offset) {
    /** The type of the column with this number of rows. */
    TensorType type(int rows) {
      return TensorType.of(column.dtype(), column.shape()).withRows(rows);
    }
  }

  /**
   * Computes the layout of a feed's batches.
   *
   * @throws IllegalArgumentException if no column is a tensor of fixed shape
   */
  static GpuBatchLayout of(FeedSpec spec) {
    List<Place> places = new ArrayList<>();
    long end = 0;
    for (TensorColumn column : TensorCheck.columns(spec.schema())) {
      if (column.fixed()) {
        Place place = new Place(column, end);
        places.add(place);
        end = align(end + place.type(spec.batchRows()).bytes());
      }
    }
    if (places.isEmpty()) {
      throw new IllegalArgumentException(
          "no column of the feed is a number, or a tensor of fixed shape, for a GPU: "
              + spec.schema().simpleString());
    }
    return new GpuBatchLayout(spec.batchRows(), List.copyOf(places), end);
  }

  private static long align(long bytes) {
    return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
  }

  /**
   * Finds the place of a column.
   *
   * @throws IllegalArgumentException if the column is not in the layout
   */
  Place place(String column) {
    for (Place place : columns) {
      if (place.column().name().equals(column)) {
        return place;
      }
    }
    throw new IllegalArgumentException(
        "column %s is not on the GPU, which has only numbers and tensors of fixed shape: %s"
            .formatted(column, columns.stream().map(place -> place.column().name()).toList()));
  }

  /**
   * Returns the runs of a batch to upload.
   *
   * @param start of the batch in the memory that it is uploaded to
   * @throws IllegalStateException if a value is null
   */
  List<DeviceUploads.Run> runs(ChunkView batch, long start) {
    List<DeviceUploads.Run> runs = new ArrayList<>();
    for (Place place : columns) {
      var values = place.column().in(batch).buffer();
      runs.add(new DeviceUploads.Run(values.address(), start + place.offset(), values.bytes()));
    }
    return runs;
  }
}
