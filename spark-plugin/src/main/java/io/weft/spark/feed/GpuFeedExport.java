package io.weft.spark.feed;

import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;

/**
 * The batches of a feed in memory of the ranks' GPUs. Processes of the same user and host that are
 * not executors map it by CUDA IPC and copy nothing. Each rank has one run of memory. Batch n
 * starts at n times {@link #batchBytes()}, and the manifest names the offsets of its columns. All
 * batches are full except a rank's last ones: batch n has the shard's remaining rows, at most
 * {@code batchRows}.
 *
 * <p>The memory is freed when it is closed, and at the end of the application or of its executor. A
 * process that holds a lock ({@code fcntl}) on a shard's lease file keeps the shard until it
 * releases the lock or dies. It must take the lock before it maps the memory, and unmap the memory
 * before it releases the lock.
 *
 * <p>On the driver; thread-safe.
 */
public final class GpuFeedExport extends ShardedExport<GpuFeedExport.Shard> {
  private final GpuBatchLayout layout;

  /**
   * One rank's batches.
   *
   * @param rank the rank
   * @param host that has the GPU
   * @param executor that keeps the memory
   * @param lease path of the file to lock
   * @param pid process of the executor
   * @param gpu its uuid, without the prefix {@code GPU-}
   * @param handle {@code CUipcMemHandle}, 64 bytes in hexadecimal digits
   * @param offset of the batches in the memory of the handle
   * @param bytes of all batches
   * @param batches number of batches of the rank
   * @param rows number of rows in all batches
   */
  public record Shard(
      int rank,
      String host,
      String executor,
      String lease,
      long pid,
      String gpu,
      String handle,
      long offset,
      long bytes,
      int batches,
      long rows)
      implements Serializable {}

  GpuFeedExport(SparkContext context, int number, FeedSpec spec, List<Shard> shards) {
    super(context, number, spec, shards);
    this.layout = GpuBatchLayout.of(spec);
  }

  /** Distance in bytes from one batch to the next. */
  public long batchBytes() {
    return layout.bytes();
  }

  /**
   * Describes the export as JSON. {@code format}, {@code application}, {@code export}, {@code
   * ranks}, {@code batchRows}, {@code rows} and {@code shuffleSeed} are those of {@link
   * FeedExport#manifest}. {@code batchBytes} is the distance of batches. {@code tensors} has per
   * column the {@code dtype}, the {@code shape} of one row, and the {@code offset} in a batch.
   * {@code shards} has the fields of {@link Shard}.
   */
  @Override
  public String manifest() {
    return json();
  }

  @Override
  void describe(Map<String, Object> manifest) {
    Map<String, Object> tensors = new LinkedHashMap<>();
    for (GpuBatchLayout.Place place : layout.columns()) {
      Map<String, Object> tensor = new LinkedHashMap<>();
      tensor.put("dtype", place.column().dtype().toString());
      tensor.put("shape", place.column().shape());
      tensor.put("offset", place.offset());
      tensors.put(place.column().name(), tensor);
    }
    manifest.put("batchBytes", batchBytes());
    manifest.put("tensors", tensors);
  }

  @Override
  long rows(Shard shard) {
    return shard.rows();
  }
}
