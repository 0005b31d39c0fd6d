package io.weft.spark.feed;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
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
 * An export of a feed with one shard per rank, and its manifest. On the driver; thread-safe.
 *
 * @param <S> the description of a shard, a record that becomes JSON
 */
public abstract class ShardedExport<S> implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ShardedExport.class);

  /** The version of the manifest, which readers compare. */
  private static final int FORMAT = 1;

  private final SparkContext context;
  private final int number;
  private final FeedSpec spec;
  private final List<S> shards;
  private boolean closed;

  ShardedExport(SparkContext context, int number, FeedSpec spec, List<S> shards) {
    this.context = context;
    this.number = number;
    this.spec = spec;
    this.shards = List.copyOf(shards);
  }

  /** Returns the shards, in the order of the ranks. */
  public List<S> shards() {
    return shards;
  }

  /** Describes the export as JSON, for readers in other processes. */
  public abstract String manifest();

  /** Number of rows in a shard. */
  abstract long rows(S shard);

  /** Adds the entries between {@code shuffleSeed} and {@code shards} to a manifest. */
  abstract void describe(Map<String, Object> manifest) throws JsonProcessingException;

  final FeedSpec spec() {
    return spec;
  }

  final String json() {
    Map<String, Object> manifest = new LinkedHashMap<>();
    try {
      manifest.put("format", FORMAT);
      manifest.put("application", context.applicationId());
      manifest.put("export", number);
      manifest.put("ranks", spec.ranks());
      manifest.put("batchRows", spec.batchRows());
      manifest.put("rows", shards.stream().mapToLong(this::rows).sum());
      manifest.put("shuffleSeed", spec.shuffleSeed());
      describe(manifest);
      manifest.put("shards", shards);
      return new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(manifest);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("the manifest of a feed cannot be written", e);
    }
  }

  /** Writes the manifest to a file of the driver's host. */
  public void writeManifest(Path file) throws IOException {
    Files.writeString(file, json());
  }

  /**
   * Frees the shards that are not locked, and each locked one when its lock is released.
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
