package io.weft.spark.feed;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;

/**
 * The batches of a feed in memory of the ranks' GPUs, for processes of the same user and host that
 * are no executors: they map it by CUDA IPC and copy nothing. One run of memory per rank; batch n
 * starts at n times {@link #batchBytes()} and its columns lie at the offsets that the manifest
 * names. All batches are full but a rank's last ones: batch n has as many of the shard's rows as
 * are left, at most a batch's.
 *
 * <p>Closing it frees the memory; the end of the application, or of an executor, does so as well. A
 * process that has a lock ({@code fcntl}) on a shard's lease file keeps the shard until it lets go
 * or dies: it takes the lock before it maps the memory, and unmaps it before it lets go.
 *
 * <p>On the driver; thread-safe.
 */
public final class GpuFeedExport implements AutoCloseable {
  private final SparkContext context;
  private final int number;
  private final FeedSpec spec;
  private final GpuBatchLayout layout;
  private final List<Shard> shards;
  private boolean closed;

  /**
   * One rank's batches.
   *
   * @param rank which
   * @param host where the GPU is
   * @param executor that keeps the memory
   * @param lease path of the file to lock
   * @param pid process of the executor
   * @param gpu its uuid, without the prefix {@code GPU-}
   * @param handle {@code CUipcMemHandle}, 64 bytes in hexadecimal digits
   * @param offset of the batches in what the handle stands for
   * @param bytes of all batches
   * @param batches of the rank
   * @param rows in all of them
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
    this.context = context;
    this.number = number;
    this.spec = spec;
    this.layout = GpuBatchLayout.of(spec);
    this.shards = List.copyOf(shards);
  }

  /** The memory of each rank, in the order of the ranks. */
  public List<Shard> shards() {
    return shards;
  }

  /** Bytes from one batch to the next. */
  public long batchBytes() {
    return layout.bytes();
  }

  /**
   * All of it as JSON: {@code ranks}, {@code batchRows}, {@code rows}, {@code batchBytes}, {@code
   * tensors} (per column {@code dtype}, {@code shape} of one row, and its {@code offset} in a
   * batch) and {@code shards} as {@link Shard} names them.
   */
  public String manifest() {
    Map<String, Object> tensors = new LinkedHashMap<>();
    for (GpuBatchLayout.Place place : layout.columns()) {
      Map<String, Object> tensor = new LinkedHashMap<>();
      tensor.put("dtype", place.column().dtype().toString());
      tensor.put("shape", place.column().shape());
      tensor.put("offset", place.offset());
      tensors.put(place.column().name(), tensor);
    }
    Map<String, Object> manifest = new LinkedHashMap<>();
    manifest.put("ranks", spec.ranks());
    manifest.put("batchRows", spec.batchRows());
    manifest.put("rows", shards.stream().mapToLong(Shard::rows).sum());
    manifest.put("batchBytes", batchBytes());
    manifest.put("tensors", tensors);
    manifest.put("shards", shards);
    try {
      return new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(manifest);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("the manifest of a feed cannot be written", e);
    }
  }

  /** Writes {@link #manifest()} to a file of the driver's host. */
  public void writeManifest(Path file) throws IOException {
    Files.writeString(file, manifest());
  }

  /** Frees the memory of shards that nobody has locked; the others when that is over. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      FeedExport.release(context, number);
    }
  }
}
