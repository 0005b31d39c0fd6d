package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The jar that was built against one Spark also runs on the oldest and the newest Spark, with their
 * own jars in drivers and executors, and gives the same answers.
 */
class OneJarTest {
  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @ParameterizedTest
  @ValueSource(strings = {"4.0", "4.2"})
  void runsOn(String distribution) throws IOException {
    Answers.prepare(Queries.compact());
    Path logs = Files.createDirectories(WORKSPACE.folder().resolve("logs-" + distribution));
    SparkHome home =
        SparkHome.assemble(
            WORKSPACE.folder().resolve(distribution), distribution, java.util.List.of());
    Submission submission =
        new Submission(WORKSPACE, home, InteractiveApplication.class)
            .master("local-cluster[2,1,1024]")
            .plugin()
            .set("spark.ui.enabled", "true")
            .set("spark.ui.port", "0")
            .set("spark.eventLog.enabled", "true")
            .set("spark.eventLog.compress", "false")
            .set("spark.eventLog.dir", logs.toUri().toString())
            .jar(BuildTree.weftJar());
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      assertThat(talk.order("version")).startsWith(distribution);
      for (String route : new String[] {"rows", "columns"}) {
        long before = talk.sum("outputsPublished");
        talk.order("set spark.weft.route " + route);
        talk.checkCompact();
        assertThat(talk.order("sql SELECT /*+ REPARTITION(3) */ * FROM range(1000)"))
            .isEqualTo("1000");
        assertThat(talk.sum("outputsPublished"))
            .as("map outputs by " + route)
            .isGreaterThan(before);
      }
      saveFeed(talk);
      assertThat(talk.order("page /weft/")).contains("On: SQL shuffles", "<td>columns</td>");
      assertThat(talk.order("page /weft/json?pageSize=3")).contains("\"pageSize\" : 3");
      talk.quit();
    }
    assertThat(logged(logs))
        .contains("io.weft.spark.ui.ActivityEvent", "\"route\":\"columns\"")
        .contains("\"executors\":[{\"id\":\"0\"", "{\"id\":\"1\"");
    WORKSPACE.awaitNoFiles();
  }

  /** The data source is found in a jar that only {@code --jars} names, by SQL alone. */
  private static void saveFeed(Conversation talk) {
    talk.order(
        "sql CREATE TABLE exported USING weft OPTIONS (ranks 2, batchRows 50, shuffleSeed 17)"
            + " AS SELECT id, array(id) AS x FROM range(1000)");
    assertThat(talk.order("sql SELECT * FROM exported WHERE rows = 500")).isEqualTo("2");
    assertThat(talk.order("sql SELECT DISTINCT path FROM exported")).isEqualTo("2");
    assertThat(
            talk.orderThatFails(
                "sql CREATE TABLE refused USING weft OPTIONS (ranks 0) AS SELECT 1 AS one"))
        .contains("option ranks of format weft is \"0\"");
    talk.order("sql DROP TABLE exported");
  }

  private static String logged(Path logs) throws IOException {
    StringBuilder text = new StringBuilder();
    try (Stream<Path> files = Files.walk(logs)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        text.append(Files.readString(file));
      }
    }
    return text.toString();
  }
}
