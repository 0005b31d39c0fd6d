package io.weft.spark.feed.source;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Exports to a file system that is slow, and that renames nothing. */
class RemoteFolderTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  /** Run before a manifest is deleted. */
  private static final AtomicReference<Runnable> BEFORE_DELETE = new AtomicReference<>(() -> {});

  private static LocalSpark spark;

  @TempDir Path parent;

  /** Local files under another scheme. */
  public static final class RemoteFiles extends RawLocalFileSystem {
    /** Hadoop creates it by reflection. */
    public RemoteFiles() {}

    @Override
    public URI getUri() {
      return URI.create("remote:///");
    }

    @Override
    public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to) {
      return false;
    }

    @Override
    public boolean delete(org.apache.hadoop.fs.Path file, boolean recursive) throws IOException {
      if (file.getName().equals("manifest.json")) {
        BEFORE_DELETE.get().run();
      }
      return super.delete(file, recursive);
    }
  }

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of("spark.hadoop.fs.remote.impl", RemoteFiles.class.getName()));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @AfterEach
  void removeHook() {
    BEFORE_DELETE.set(() -> {});
  }

  private static DataFrameWriter<Row> writer(long rows) {
    return spark
        .session()
        .range(0, rows, 1, 2)
        .toDF()
        .write()
        .format("weft")
        .option("ranks", 2)
        .option("batchRows", 10)
        .mode(SaveMode.Overwrite);
  }

  private static List<Path> files(String folder) {
    return spark.session().read().format("weft").load(folder).collectAsList().stream()
        .map(shard -> Path.of(shard.<String>getAs("path")))
        .toList();
  }

  private String folder(String name) {
    return "remote://" + parent.resolve(name);
  }

  private static void awaitFreed(List<Path> files) {
    Awaitility.await("the end of " + files)
        .atMost(LIMIT)
        .until(() -> files.stream().noneMatch(Files::exists));
  }

  private static void await(CountDownLatch latch, long seconds) {
    try {
      boolean unused = latch.await(seconds, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void anExportIsReplacedWithoutRenames() {
    String folder = folder("features");
    writer(40).save(folder);
    List<Path> first = files(folder);
    writer(60).save(folder);
    awaitFreed(first);
    assertThat(files(folder)).doesNotContainAnyElementsOf(first).allMatch(Files::exists);
  }

  /** The lease ends while its export is replaced: the new manifest stays. */
  @Test
  void theEndOfALeaseDeletesNoManifestOfALaterExport() {
    String folder = folder("features");
    CountDownLatch deleting = new CountDownLatch(1);
    CountDownLatch replaced = new CountDownLatch(1);
    BEFORE_DELETE.set(
        () -> {
          if (Thread.currentThread().getName().startsWith("weft-exports")) {
            deleting.countDown();
            // The save has to wait for the deletion, so this usually ends by its timeout.
            await(replaced, 3);
          }
        });
    writer(40).option("lease", "1s").save(folder);
    await(deleting, LIMIT.toSeconds());
    assertThat(deleting.getCount()).isZero();
    writer(60).save(folder);
    replaced.countDown();
    List<Path> files = files(folder);
    assertThat(files).hasSize(2).allMatch(Files::exists);
  }

  /** A file system that does not answer delays neither other leases nor the freeing itself. */
  @Test
  void aFileSystemThatDoesNotAnswerDelaysNoOtherLease() {
    CountDownLatch answer = new CountDownLatch(1);
    CountDownLatch deleting = new CountDownLatch(1);
    String slow = folder("slow");
    writer(40).save(slow);
    List<Path> stuck = files(slow);
    BEFORE_DELETE.set(
        () -> {
          deleting.countDown();
          await(answer, LIMIT.toSeconds());
        });
    Path local = parent.resolve("local");
    try {
      writer(40).save(local.toString());
      List<Path> other = files(local.toString());
      writer(40).option("lease", "1s").save(folder("slower"));
      await(deleting, LIMIT.toSeconds());
      assertThat(deleting.getCount()).isZero();
      assertThat(local.resolve("manifest.json").toFile().delete()).isTrue();
      awaitFreed(other);
      assertThat(answer.getCount()).isOne();
      assertThat(stuck).allMatch(Files::exists);
    } finally {
      answer.countDown();
    }
  }
}
