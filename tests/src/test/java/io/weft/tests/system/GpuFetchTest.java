package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.sql.WeftGpu;
import io.weft.tests.application.GpuSqlJob;
import io.weft.tests.application.Notes;
import io.weft.tests.support.DoubleGpus;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Reduce tasks fetch blocks of the other executor's GPU in groups, the next ones ahead, with the
 * jar that users get, on the doubles of libcuda and libnccl.
 */
class GpuFetchTest {
  private static final String GROUP = "withdrawn";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private WeftCluster cluster;
  private Path machine;
  private Path notes;

  @AfterEach
  void stop() {
    if (cluster != null) {
      cluster.stop();
    }
  }

  private void start(int tasks, String key, String value) throws IOException {
    DoubleGpus.assume();
    machine = Files.createTempDirectory(WORKSPACE.folder(), "machine-");
    cluster = new WeftCluster(WORKSPACE).cores(tasks);
    DoubleGpus.settings(machine).forEach(cluster::set);
    cluster.set("spark.task.resource.gpu.amount", Double.toString(1.0 / tasks));
    cluster.set(key, value);
    cluster.start();
  }

  private GpuSqlJob job(boolean waits) throws IOException {
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
    return new GpuSqlJob(
        DoubleGpus.libcuda(machine).toString(), waits ? new Notes(notes.toString()) : null);
  }

  private String awaitVictim(CompletableFuture<?> job) throws IOException {
    Path note = notes.resolve("victim");
    Awaitility.await("a task that waits on its first batch")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(note) || job.isDone());
    assertThat(job).isNotDone();
    return Files.readString(note);
  }

  private void checkRules() throws IOException {
    assertThat(job(false).ask(cluster.session()))
        .extracting(GpuSqlJob.Answer::violations)
        .containsOnly("");
    cluster.awaitSum("transferBuffersOut", 0);
  }

  /** Groups of a few blocks; two tasks of each executor read from the other at the same time. */
  @Test
  void groupsTravelAheadIntoMemoryThatIsReused() throws Exception {
    start(2, "spark.weft.gpu.fetchAhead", "64k");
    List<String> expected = GpuSqlJob.expected(cluster.session());
    assertThat(job(false).run(cluster.session())).isEqualTo(expected);
    long groups = cluster.sum("gpuFetchGroups");
    long blocks = cluster.sum("gpuFetchBlocks");
    assertThat(groups).isGreaterThan(2);
    assertThat(blocks).as("blocks of %d groups", groups).isGreaterThan(groups);
    assertThat(cluster.sum("gpuFetchGroupsAhead")).isBetween(1L, groups - 1);
    assertThat(cluster.sum("gpuFetchGroupsSplit")).isZero();
    long fresh = cluster.sum("transferBuffersFresh");
    assertThat(fresh).isPositive();

    assertThat(job(false).run(cluster.session())).isEqualTo(expected);
    assertThat(cluster.sum("gpuFetchGroups")).isGreaterThan(groups);
    assertThat(cluster.sum("transferBuffersFresh")).isEqualTo(fresh);
    assertThat(cluster.sum("transferFailed")).isZero();
    checkRules();

    withdraw();
    assertThat(job(false).run(cluster.session())).isEqualTo(expected);
    assertThat(cluster.sum("transferBuffersFresh")).isEqualTo(fresh);
    checkRules();

    CompletableFuture<List<String>> killed = started(job(true));
    cluster.executor(awaitVictim(killed)).kill();
    assertThat(killed.get(4, TimeUnit.MINUTES)).isEqualTo(expected);
    cluster.awaitExecutors();
    checkRules();
  }

  /** Its groups are on their way, or have come, when the task ends. */
  private void withdraw() throws Exception {
    CompletableFuture<List<String>> cancelled = started(job(true));
    String unused = awaitVictim(cancelled);
    cluster.context().cancelJobGroup(GROUP);
    assertThat(cancelled.handle((rows, failure) -> failure).get(2, TimeUnit.MINUTES)).isNotNull();
    cluster.awaitSum("transferBuffersOut", 0);
  }

  private CompletableFuture<List<String>> started(GpuSqlJob job) {
    return CompletableFuture.supplyAsync(
        () -> {
          cluster.context().setJobGroup(GROUP, "may be cancelled", true);
          try {
            return job.run(cluster.session());
          } finally {
            cluster.context().clearJobGroup();
          }
        });
  }

  /** Each reader's blocks are larger than the receive memory, but not a single block. */
  @Test
  void blocksComeOneByOneWhereReceiveMemoryIsShort() throws Exception {
    start(1, "spark.weft.transfers.gpuMemory", "2m");
    SparkSession session = cluster.session();
    session.conf().set("spark.weft.enabled", "false");
    List<String> expected = GpuSqlJob.sorted(wide(session, false));
    session.conf().set("spark.weft.enabled", "true");
    assertThat(GpuSqlJob.sorted(wide(session, true))).isEqualTo(expected);
    assertThat(cluster.sum("gpuFetchGroupsSplit")).isPositive();
    assertThat(cluster.sum("transferBuffersFresh")).isBetween(2L << 20, 4L << 20);
    checkRules();
  }

  private static Dataset<String> wide(SparkSession session, boolean onGpu) {
    Dataset<Row> rows =
        session
            .range(0, 4000, 1, 16)
            .selectExpr("id", "repeat(concat('row ', id, ' '), 300) s", "id % 100 k");
    return (onGpu ? WeftGpu.onDevice(rows) : rows)
        .repartition(2, functions.col("k"))
        .selectExpr("id", "hash(s) h", "spark_partition_id() p")
        .toJSON();
  }
}
