package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.doctor.DoctorCommand;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.HdfsProcess;
import io.weft.tests.support.HeldTask;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.MethodOrderer.OrderAnnotation;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import picocli.CommandLine;

/** Copies of map outputs in a file system that is not local, and what follows if it fails. */
@Tag("slow")
@TestMethodOrder(OrderAnnotation.class)
class SurvivingHostOnHdfsTest {
  private static final int MAP_TASKS = 8;

  /** The first map task has no rows, so no file. */
  private static final int FILES = 7;

  private static final String COPIED = "outputsCopied";
  private static final String NOT_COPIED = "was not copied, and is computed again if it is lost";

  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 40) AS s FROM RANGE(0, 32000, 1, 8) WHERE id >= 4000";

  @RegisterExtension
  @Order(1)
  static final HdfsProcess HDFS = new HdfsProcess();

  @RegisterExtension
  @Order(2)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(3)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .copyingTo(HDFS)
          .cores(2)
          .set("spark.weft.route", "rows")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  @Test
  @Order(1)
  void copiesAreReadAfterTheDeathOfAllExecutorsAndGoWithTheirShuffle() throws IOException {
    List<String> expected = expected();
    JavaRDD<String> rows = shuffled(SQL);
    Rows.assertSame("before", expected, sorted(rows));
    CLUSTER.awaitSum(COPIED, MAP_TASKS);
    int shuffle = MapOutputs.lastShuffle();
    assertThat(copiesOf(shuffle)).hasSize(FILES);
    assertThat(applications().get(0).getPermission().toShort()).isEqualTo((short) 0700);
    killAll();
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("after the deaths", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks").isZero();
      assertThat(log.fetchFailures()).isEmpty();
    }
    assertThat(CLUSTER.sum("copyBytesRead")).as("bytes read from copies").isPositive();
    rows = null;
    Awaitility.await("no copies of the shuffle")
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(
            () -> {
              System.gc();
              assertThat(copiesOf(shuffle)).isEmpty();
            });
  }

  /** A server that gives no answer must not hold up the job. */
  @Test
  @Order(2)
  void aJobGoesOnWhileTheFileSystemIsSuspended() {
    List<String> expected = expected();
    long before = CLUSTER.sum(COPIED);
    long bytes = CLUSTER.sum("bytesCopied");
    HDFS.suspend();
    JavaRDD<String> rows;
    try {
      rows = shuffled(SQL);
      Rows.assertSame("while it is suspended", expected, sorted(rows));
      assertThat(CLUSTER.sum("bytesCopied")).as("bytes copied meanwhile").isEqualTo(bytes);
    } finally {
      HDFS.resume();
    }
    CLUSTER.awaitSum(COPIED, before + MAP_TASKS);
    Rows.assertSame("after that", expected, sorted(rows));
  }

  @Test
  @Order(3)
  void copiesOfDeadApplicationsAreSweptByTheirAge() throws IOException {
    try (FileSystem files = files()) {
      Path ofUser = applications().get(0).getPath().getParent();
      Path dead = new Path(ofUser, "dead");
      Path young = new Path(ofUser, "young");
      for (Path application : List.of(dead, young)) {
        files.mkdirs(new Path(application, "0"));
        files.create(new Path(application, "alive")).close();
      }
      long age = Duration.ofHours(2).toMillis();
      files.setTimes(new Path(dead, "alive"), System.currentTimeMillis() - age, -1);
      StringWriter out = new StringWriter();
      int status =
          new CommandLine(new DoctorCommand())
              .setOut(new PrintWriter(out))
              .execute(
                  "--sweep",
                  "--folder",
                  WORKSPACE.folder().toString(),
                  "--survive-path",
                  HDFS.uri() + "/copies");
      assertThat(status).as(out.toString()).isZero();
      assertThat(out.toString()).contains("removed " + dead).doesNotContain(young.toString());
      assertThat(files.exists(dead)).isFalse();
      assertThat(files.exists(young)).isTrue();
      assertThat(applications()).as("with that of the living application").hasSize(2);
      files.delete(young, true);
    }
  }

  @Test
  @Order(4)
  void theFolderGoesWithTheApplication() throws IOException {
    JavaRDD<String> rows = shuffled(SQL);
    long before = CLUSTER.sum(COPIED);
    assertThat(sorted(rows)).isNotEmpty();
    CLUSTER.awaitSum(COPIED, before + MAP_TASKS);
    CLUSTER.stop();
    assertThat(applications()).isEmpty();
    CLUSTER.start();
  }

  /** The last test: some outputs have copies, which cannot be read any more, and some have none. */
  @Test
  @Order(5)
  void rowsStayRightIfTheFileSystemDiesInAJobAndTheExecutorsAfterIt() throws Exception {
    List<String> expected = expected();
    try (HeldTask held = HeldTask.register(CLUSTER.session(), WORKSPACE, 31_000)) {
      held.hold();
      JavaRDD<String> rows = shuffled(SQL.replace("SELECT id", "SELECT hold(id) AS id"));
      CompletableFuture<List<String>> first = CompletableFuture.supplyAsync(() -> sorted(rows));
      held.awaitHeld();
      int shuffle = MapOutputs.lastShuffle();
      Awaitility.await("some copies")
          .atMost(Duration.ofMinutes(1))
          .until(() -> copiesOf(shuffle).size() >= FILES / 2);
      HDFS.kill();
      held.release();
      Rows.assertSame("without HDFS", expected, first.get(1, TimeUnit.MINUTES));
      CLUSTER.awaitLogged(NOT_COPIED);
      assertThat(sorted(shuffled(SQL))).as("another shuffle").isEqualTo(expected);
      assertThat(CLUSTER.mostLogged(NOT_COPIED)).as("warnings of an executor").isEqualTo(1);
      CLUSTER.executors().forEach(ExecutorProcess::kill);
      Rows.assertSame("after all deaths", expected, sorted(rows));
    }
  }

  private static JavaRDD<String> shuffled(String sql) {
    Queries.configure(CLUSTER.session(), false);
    return CLUSTER.session().sql(sql).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }

  private static void killAll() {
    List<ExecutorProcess> victims = CLUSTER.executors();
    victims.forEach(ExecutorProcess::kill);
    victims.forEach(victim -> MapOutputs.awaitElsewhere(victim, MAP_TASKS));
    CLUSTER.awaitExecutors();
  }

  /** A connection of its own, which the caller closes. */
  private static FileSystem files() throws IOException {
    return FileSystem.newInstance(URI.create(HDFS.uri()), new Configuration());
  }

  /** The folders of applications of this user. */
  private static List<FileStatus> applications() throws IOException {
    try (FileSystem files = files()) {
      return list(files, new Path("/copies/weft-" + System.getProperty("user.name")));
    }
  }

  /** The copies of a shuffle, of any application. */
  private static List<FileStatus> copiesOf(int shuffle) throws IOException {
    try (FileSystem files = files()) {
      FileStatus[] found =
          files.globStatus(
              new Path("/copies/weft-" + System.getProperty("user.name") + "/*/" + shuffle + "/*"));
      return found == null ? List.of() : Arrays.asList(found);
    }
  }

  private static List<FileStatus> list(FileSystem files, Path folder) throws IOException {
    return Arrays.asList(files.listStatus(folder));
  }
}
