package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.StandaloneCluster;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** One jar and one setting enable Weft for every master and every way to add the jar. */
class EnablingTest {
  private static final String WEFT_MANAGER = "io.weft.spark.shuffle.WeftShuffleManager";
  private static final String LOCAL_CLUSTER = "local-cluster[2,1,1024]";
  private static final String IN_ONE_JVM = "local[*]";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static SparkHome homeWithWeft;

  @BeforeAll
  static void makeHome() {
    Answers.prepare(Queries.smoke());
    homeWithWeft =
        SparkHome.assemble(
            WORKSPACE.folder().resolve("home"), "default", List.of(BuildTree.weftJar()));
  }

  @Test
  void inOneJvmByJars() {
    checkAll(byJars(IN_ONE_JVM));
  }

  @Test
  void inALocalClusterByJars() {
    checkAll(byJars(LOCAL_CLUSTER));
  }

  @Test
  void inALocalClusterByTheJarsFolder() {
    checkAll(byFolder(LOCAL_CLUSTER));
  }

  @Test
  void onStandaloneWorkersByJars() {
    try (StandaloneCluster cluster = StandaloneCluster.start(WORKSPACE, SparkHome.shared(), 2)) {
      checkAll(byJars(cluster.url()));
    }
  }

  @Test
  void onStandaloneWorkersByTheJarsFolder() {
    try (StandaloneCluster cluster = StandaloneCluster.start(WORKSPACE, homeWithWeft, 2)) {
      checkAll(byFolder(cluster.url()));
    }
  }

  private static void checkAll(Submission submission) {
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      assertThat(talk.order("manager")).isEqualTo(WEFT_MANAGER);
      talk.checkSmoke();
      assertThat(talk.sum("outputsPublished")).as("map outputs through Weft").isPositive();
      talk.quit();
    }
    WORKSPACE.awaitNoFiles();
  }

  private static Submission byJars(String master) {
    return new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
        .master(master)
        .plugin()
        .jar(BuildTree.weftJar());
  }

  private static Submission byFolder(String master) {
    return new Submission(WORKSPACE, homeWithWeft, InteractiveApplication.class)
        .master(master)
        .plugin();
  }

  @Test
  void aManagerOfTheUserStays() {
    String own = "org.apache.spark.shuffle.sort.SortShuffleManager";
    Submission submission = byJars(IN_ONE_JVM).set("spark.shuffle.manager", own);
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      assertThat(talk.order("manager")).isEqualTo(own);
      talk.checkSmoke();
      assertThat(talk.order("plan SELECT /*+ REPARTITION(5, k) */ * FROM facts_parquet"))
          .doesNotContain("Weft");
      talk.quit();
      assertOneLine(talk.process(), "spark.shuffle.manager", own);
    }
  }

  @Test
  void anExtensionOfTheUserStays() {
    Submission submission =
        byJars(IN_ONE_JVM).set("spark.sql.extensions", "io.weft.tests.application.UserExtensions");
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      assertThat(talk.order("manager")).isEqualTo(WEFT_MANAGER);
      assertThat(talk.order("sql SELECT user_function()")).isEqualTo("1");
      talk.order("set spark.weft.route columns");
      assertThat(talk.order("plan SELECT /*+ REPARTITION(5, k) */ * FROM facts_parquet"))
          .contains("Weft");
      talk.checkSmoke();
      talk.quit();
      assertOneLine(talk.process(), "spark.sql.extensions", "UserExtensions");
    }
  }

  /**
   * One line of the driver's log gives the effect of the setting on Weft. Only Weft's lines count:
   * where an event took long, Spark logs it with all settings.
   */
  private static void assertOneLine(ChildProcess process, String key, String value) {
    assertThat(process.lines(line -> line.contains(" WeftDriver: ")))
        .filteredOn(line -> line.contains(key) && line.contains(value))
        .as(process.describe("says once what " + key + " means"))
        .hasSize(1);
  }
}
