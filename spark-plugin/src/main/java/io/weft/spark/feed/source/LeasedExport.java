package io.weft.spark.feed.source;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.spark.feed.ShardedExport;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An export of this driver, the folder of its manifest, and the end of its lease. Thread-safe.
 *
 * @param folder where other programs find the manifest
 * @param path the folder's absolute path
 * @param manifest with the fields {@code application} and {@code export}, which identify the export
 * @param endNanos end of the lease by {@link System#nanoTime}; empty without a lease
 */
record LeasedExport(
    SparkContext context,
    ShardedExport<?> export,
    ExportFolder folder,
    String path,
    ObjectNode manifest,
    Optional<Long> endNanos) {
  private static final Logger LOG = LoggerFactory.getLogger(LeasedExport.class);

  /** The end of the lease in a manifest: milliseconds since 1970, absent without a lease. */
  static final String LEASE_END = "leaseEnd";

  /** Starts the lease. */
  static LeasedExport of(
      SparkContext context, ShardedExport<?> export, ExportFolder folder, Optional<Duration> lease)
      throws IOException {
    ObjectNode manifest = (ObjectNode) new ObjectMapper().readTree(export.manifest());
    lease.ifPresent(time -> manifest.put(LEASE_END, Instant.now().plus(time).toEpochMilli()));
    return new LeasedExport(
        context,
        export,
        folder,
        folder.qualified().toString(),
        manifest,
        lease.map(time -> System.nanoTime() + time.toNanos()));
  }

  long rows() {
    return manifest.get("rows").asLong();
  }

  boolean isLeaseOver() {
    return endNanos.isPresent() && System.nanoTime() - endNanos.get() >= 0;
  }

  /**
   * Whether the folder still has this export's manifest. If the file system does not answer, the
   * export is kept.
   */
  boolean isPublished() {
    try {
      return isOurs(folder.manifest());
    } catch (ExportFolder.UnreadableManifestException e) {
      return false;
    } catch (IOException | RuntimeException e) {
      LOG.debug("The manifest in {} cannot be read; its export is kept", folder, e);
      return true;
    }
  }

  private boolean isOurs(Optional<ObjectNode> found) {
    return found
        .filter(other -> manifest.get("application").equals(other.get("application")))
        .filter(other -> manifest.get("export").equals(other.get("export")))
        .isPresent();
  }

  /** Deletes the manifest, unless another export has replaced it. */
  void withdraw() {
    try {
      if (isOurs(folder.manifest())) {
        folder.remove();
      }
    } catch (ExportFolder.UnreadableManifestException e) {
      LOG.debug("Another program has replaced the manifest in {}", folder, e);
    } catch (IOException | RuntimeException e) {
      LOG.warn(
          "The manifest in {} names shards that are freed; delete it: {}", folder, e.toString());
    }
  }
}
