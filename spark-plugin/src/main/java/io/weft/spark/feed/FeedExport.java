package io.weft.spark.feed;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.spark.feed.arrow.TensorColumn;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;

/**
 * The batches of a feed as Arrow IPC files, one per rank, in shared memory of the hosts where the
 * ranks' tasks ran. Processes of the same user that are not executors can read them. A file's
 * buffers start at multiples of 64 bytes, so a reader that maps it copies nothing.
 *
 * <p>The files are freed when it is closed, and at the end of the application or of their executor.
 * A process that holds a lock ({@code fcntl}) on a shard's lease file keeps the shard until it
 * releases the lock or dies, or the executor ends in order. Its existing mappings stay valid in any
 * case.
 *
 * <p>On the driver; thread-safe.
 */
public final class FeedExport extends ShardedExport<FeedExport.Shard> {
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
    super(context, number, spec, shards);
  }

  /**
   * Describes the export as JSON. {@code format} is the version of this description. The id of the
   * {@code application} and the number of the {@code export} in it identify the export. {@code
   * ranks}, {@code batchRows}, {@code rows} and {@code shuffleSeed} (null without one) describe the
   * feed. {@code schema} is as Spark writes it; {@code tensors} has per column the {@code dtype}
   * and {@code shape} of one row. {@code shards} has the fields of {@link Shard}.
   */
  @Override
  public String manifest() {
    return json();
  }

  @Override
  void describe(Map<String, Object> manifest) throws JsonProcessingException {
    Map<String, Object> tensors = new LinkedHashMap<>();
    for (TensorColumn column : TensorCheck.columns(spec().schema())) {
      Map<String, Object> type = new LinkedHashMap<>();
      type.put("dtype", column.dtype().toString());
      type.put("shape", column.shape());
      tensors.put(column.name(), type);
    }
    manifest.put("schema", new ObjectMapper().readTree(spec().schema().json()));
    manifest.put("tensors", tensors);
  }

  @Override
  long rows(Shard shard) {
    return shard.rows();
  }
}
