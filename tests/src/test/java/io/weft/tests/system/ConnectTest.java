package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.ConnectGpuProgram;
import io.weft.tests.application.ConnectProgram;
import io.weft.tests.application.SqlFunctions;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.ConnectClient;
import io.weft.tests.support.DoubleGpus;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Spark Connect: real servers with Weft, clients of Spark's without it. */
class ConnectTest {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static Submission server(String name) {
    SparkHome home = SparkHome.assemble(WORKSPACE.folder().resolve(name), "connect", List.of());
    return new Submission(
            WORKSPACE, home, "org.apache.spark.sql.connect.service.SparkConnectServer")
        .master("local[2]")
        .plugin()
        .set("spark.connect.grpc.binding.address", "127.0.0.1")
        .set("spark.connect.grpc.binding.port", "0");
  }

  @Test
  void aClientSavesAndListsFeeds() {
    Path folder = WORKSPACE.folder().resolve("features");
    try (ChildProcess server = server("home").jar(BuildTree.weftJar()).start()) {
      String port = server.awaitLine("Connect server started at: .*:(\\d+)", LIMIT).group(1);
      try (ChildProcess client =
          ConnectClient.start(ConnectProgram.class, "sc://127.0.0.1:" + port, folder)) {
        client.awaitStage("saved", LIMIT);
        assertThat(client.said("session"))
            .containsExactly("org.apache.spark.sql.connect.SparkSession");
        check(client);
        client.send("end");
        client.awaitSuccess(LIMIT);
      }
      // The feed belongs to the server's application, not to the client's session.
      assertThat(WORKSPACE.files())
          .extracting(file -> file.getFileName().toString())
          .contains("rank-0.arrow", "rank-1.arrow");
      server.terminate(LIMIT);
    }
  }

  private static void check(ChildProcess client) {
    assertThat(client.said("shard")).hasSize(2).allMatch(shard -> shard.startsWith("500 "));
    assertThat(client.said("table")).containsExactly("1000");
    assertThat(client.said("error"))
        .satisfiesExactly(
            exists -> assertThat(exists).startsWith("exists ").contains("PATH_ALREADY_EXISTS"),
            ranks -> assertThat(ranks).contains("option ranks of format weft is \"0\""),
            rows -> assertThat(rows).contains("Job aborted", "shape [2] is not int64[3]"),
            nothing -> assertThat(nothing).startsWith("nothing ").contains("features-none"));
  }

  /** The classes of a setting name functions for clients, who do not reach the server's JVM. */
  @Test
  void aClientCallsAFunctionOnGpusByItsName() {
    DoubleGpus.assume();
    Submission server =
        server("gpu-home")
            .master("local-cluster[2,1,1024]")
            .set("spark.weft.gpu.functions", SqlFunctions.class.getName())
            .set("spark.sql.shuffle.orderIndependentChecksum.enabled", "false");
    DoubleGpus.settings(WORKSPACE.folder()).forEach(server::set);
    try (ChildProcess running = server.start()) {
      String port = running.awaitLine("Connect server started at: .*:(\\d+)", LIMIT).group(1);
      try (ChildProcess client =
          ConnectClient.start(ConnectGpuProgram.class, "sc://127.0.0.1:" + port)) {
        client.awaitStage("done", LIMIT);
        assertThat(client.said("rows")).containsExactly("500 true");
        assertThat(String.join(" ", client.said("plan")))
            .containsSubsequence("DeviceMap", "blocks on GPUs", "DeviceUpload");
        assertThat(client.said("error"))
            .singleElement()
            .asString()
            .contains("no function is registered as 'unknown'", "spark.weft.gpu.functions");
        client.send("end");
        client.awaitSuccess(LIMIT);
      }
      running.terminate(LIMIT);
    }
  }
}
