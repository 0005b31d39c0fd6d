package io.weft.compat;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connect.service.SparkConnectService;
import scala.Option;

/** A client of Spark Connect, whose server is in the same JVM. */
final class ConnectProgram {
  private static final String PORT = "spark.connect.grpc.binding.port";

  private ConnectProgram() {}

  static List<Program> all() {
    String port;
    try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = Integer.toString(free.getLocalPort());
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return List.of(Program.of("Spark Connect", Map.of(PORT, port), ConnectProgram::run));
  }

  private static List<String> run(SparkSession session, Path folder) throws Exception {
    SparkConnectService.start(session.sparkContext());
    try (org.apache.spark.sql.connect.SparkSession client =
        org.apache.spark.sql.connect.SparkSession.builder()
            .remote("sc://127.0.0.1:" + session.conf().get(PORT))
            .create()) {
      return client
          .sql(
              "SELECT k, COUNT(*), SUM(a.id + b.id) FROM"
                  + " (SELECT id, id % 100 AS k FROM RANGE(0, 20000, 1, 4)) a JOIN"
                  + " (SELECT id, id % 300 AS k FROM RANGE(0, 3000, 1, 4)) b USING (k) GROUP BY k")
          .collectAsList()
          .stream()
          .map(Row::toString)
          .sorted()
          .toList();
    } finally {
      SparkConnectService.stop(Option.empty(), Option.empty());
    }
  }
}
