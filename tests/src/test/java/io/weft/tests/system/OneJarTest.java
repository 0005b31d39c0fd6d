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
  void runsOn(String distribution) {
    Answers.prepare(Queries.compact());
    SparkHome home =
        SparkHome.assemble(
            WORKSPACE.folder().resolve(distribution), distribution, java.util.List.of());
    Submission submission =
        new Submission(WORKSPACE, home, InteractiveApplication.class)
            .master("local-cluster[2,1,1024]")
            .plugin()
            .jar(BuildTree.weftJar());
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      assertThat(talk.order("version")).startsWith(distribution);
      for (String route : new String[] {"rows", "columns"}) {
        long before = talk.sum("outputsPublished");
        talk.order("set spark.weft.route " + route);
        talk.checkCompact();
        assertThat(talk.sum("outputsPublished"))
            .as("map outputs by " + route)
            .isGreaterThan(before);
      }
      talk.quit();
    }
    WORKSPACE.awaitNoFiles();
  }
}
