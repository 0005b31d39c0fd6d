package io.weft.spark.runtime;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A local folder that behaves as object stores do: a file appears when it is closed, in place of
 * any other, even if the creator forbids that. Nothing can be renamed, there are no permissions,
 * and deletion may take long.
 */
public final class StoreFileSystem extends RawLocalFileSystem {
  /** The setting that makes Hadoop use this class for paths of {@link #SCHEME}. */
  public static final String SETTING = "spark.hadoop.fs.store.impl";

  private static final String SCHEME = "store";

  /** Counted down once deletions go on. */
  private static volatile CountDownLatch deletions = new CountDownLatch(0);

  private static volatile CountDownLatch waiting = new CountDownLatch(1);

  /** The path of a local folder in this file system. */
  public static String path(java.nio.file.Path folder) {
    return SCHEME + "://" + folder.toAbsolutePath();
  }

  /** Makes deletions wait until the result is counted down. */
  public static CountDownLatch blockDeletions() {
    waiting = new CountDownLatch(1);
    deletions = new CountDownLatch(1);
    return deletions;
  }

  /** Waits until a deletion waits. */
  public static void awaitBlockedDeletion() throws InterruptedException {
    if (!waiting.await(1, TimeUnit.MINUTES)) {
      throw new AssertionError("no deletion waits");
    }
  }

  @Override
  public URI getUri() {
    return URI.create(SCHEME + ":///");
  }

  @Override
  public String getScheme() {
    return SCHEME;
  }

  @Override
  public boolean hasPathCapability(Path path, String capability) {
    return false;
  }

  @Override
  public FSDataOutputStream create(
      Path file,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    ByteArrayOutputStream upload =
        new ByteArrayOutputStream() {
          @Override
          public void close() throws IOException {
            java.nio.file.Path local = Paths.get(file.toUri().getPath());
            Files.createDirectories(local.getParent());
            Files.write(local, toByteArray());
          }
        };
    return new FSDataOutputStream(upload, null);
  }

  @Override
  public boolean delete(Path file, boolean recursive) throws IOException {
    // Read first: the test may block the next deletions as soon as it knows of this one.
    CountDownLatch block = deletions;
    waiting.countDown();
    try {
      block.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
    return super.delete(file, recursive);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    throw new IOException("this store cannot rename " + from);
  }
}
