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
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The batches of a feed as Arrow IPC files, one per rank, in shared memory of the hosts where the
 * ranks' tasks ran. Processes of the same user that are not executors can read them. A file's
 * buffers start at multiples of 64 bytes, so a reader that maps it copies nothing.
 *
 * <p>The files are freed when it is closed, and at the end of the application or of their executor.
 * A process that holds a lock ({@code fcntl}) on a shard's lease file keeps the shard until it
 * releases the lock or dies. Its existing mappings stay valid in any case.
 *
 * <p>On the driver; thread-safe.
 */
public final class FeedExport implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FeedExport.class);

  private final SparkContext context;
  private final int number;
  private final FeedSpec spec;
  private final List<Shard> shards;
  private boolean closed;

  /**
   * One rank's file.
   *
   * @param rank the rank
   * @param host that has the file
   * @param executor that keeps it
   * @param file its path
   * @param lease path of the file to lock
   * @param batches number of batches in the file
   * @param rows number of rows in all batches
   * @param bytes size of the file
   */
  public record Shard(
      int rank,
      String host,
      String executor,
      String file,
      String lease,
      int batches,
      long rows,
      long bytes)
      implements Serializable {}

  FeedExport(SparkContext context, int number, FeedSpec spec, List<Shard> shards) {
    this.context = context;
    this.number = number;
    this.spec = spec;
    this.shards = List.copyOf(shards);
  }

  /** Returns the files, in the order of the ranks. */
  public List<Shard> shards() {
    return shards;
  }

  /**
   * Describes the export as JSON: {@code ranks}, {@code batchRows}, {@code rows}, {@code schema}
   * (as Spark writes it), {@code tensors} (per column {@code dtype} and {@code shape} of one row)
   * and {@code shards} with the fields of {@link Shard}.
   */
  public String manifest() {
    Map<String, Object> tensors = new LinkedHashMap<>();
    for (TensorColumn column : TensorCheck.columns(spec.schema())) {
      Map<String, Object> type = new LinkedHashMap<>();
      type.put("dtype", column.dtype().toString());
      type.put("shape", column.shape());
      tensors.put(column.name(), type);
    }
    Map<String, Object> manifest = new LinkedHashMap<>();
    ObjectMapper json = new ObjectMapper();
    try {
      manifest.put("ranks", spec.ranks());
      manifest.put("batchRows", spec.batchRows());
      manifest.put("rows", shards.stream().mapToLong(Shard::rows).sum());
      manifest.put("schema", json.readTree(spec.schema().json()));
      manifest.put("tensors", tensors);
      manifest.put("shards", shards);
      return json.writerWithDefaultPrettyPrinter().writeValueAsString(manifest);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("the manifest of a feed cannot be written", e);
    }
  }

  /** Writes {@link #manifest()} to a file of the driver's host. */
  public void writeManifest(Path file) throws IOException {
    Files.writeString(file, manifest());
  }

  /**
   * Frees the files that are not locked, and each locked file when its lock is released.
   * Idempotent.
   */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      release(context, number);
    }
  }

  /** Makes executors release an exported shard, in the same way as a shuffle. */
  static void release(SparkContext context, int number) {
    if (context.isStopped()) {
      LOG.debug("export {} ended with its application", number);
      return;
    }
    SparkEnv.get().blockManager().master().removeShuffle(number, true);
  }
}
