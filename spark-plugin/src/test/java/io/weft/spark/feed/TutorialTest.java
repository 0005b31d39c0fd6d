package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the tutorial of docs/python.md. */
class TutorialTest {
  private static final Path ROOT = Path.of(System.getProperty("weft.rootFolder"));
  private static final Pattern CODE = Pattern.compile("```python\n(.*?)```", Pattern.DOTALL);
  private static final Pattern QUERY =
      Pattern.compile("spark.sql\\(\"\"\"(.*?)\"\"\"\\)", Pattern.DOTALL);
  private static final Pattern OPTION =
      Pattern.compile("\\.option\\(\"([^\"]+)\", \"?([^\"]+?)\"?\\)");
  private static final String SAVED = "exports/features";

  @TempDir Path folder;

  private static List<String> code() throws IOException {
    String page = Files.readString(ROOT.resolve("docs/python.md"));
    return CODE.matcher(page).results().map(found -> found.group(1)).toList();
  }

  @Test
  void itHasFortyLines() throws IOException {
    String both = code().get(0) + code().get(1);
    assertThat(both.lines().filter(line -> !line.isBlank()).count()).isLessThanOrEqualTo(40);
  }

  /** Also where neither PySpark nor PyTorch is installed. */
  @Test
  void itsCodeIsPython() throws Exception {
    for (String block : code()) {
      Path file = Files.writeString(folder.resolve("block.py"), block);
      assertThat(PythonScript.succeeds("-m", "py_compile", file.toString())).as(block).isTrue();
    }
  }

  /** Java makes the query and the options of the first part; two processes run the second part. */
  @Test
  void itTrains() throws Exception {
    assumeTrue(PythonScript.has("torch"), "no python3 with numpy and torch");
    String saved = folder.resolve("features").toString();
    try (LocalSpark spark = LocalSpark.start(Map.of())) {
      save(spark, code().get(0), saved);
      Path training = folder.resolve("train.py");
      Files.writeString(training, code().get(1).replace(SAVED, saved));
      List<Process> ranks = new ArrayList<>();
      String port = freePort();
      for (int rank = 0; rank < 2; rank++) {
        ranks.add(train(training, rank, port));
      }
      try {
        assertThat(losses(ranks.get(0)))
            .hasSize(5)
            .satisfies(losses -> assertThat(losses.get(4)).isLessThan(0.8 * losses.get(0)));
        assertThat(losses(ranks.get(1))).isEmpty();
      } finally {
        ranks.forEach(Process::destroyForcibly);
      }
    }
  }

  private static void save(LocalSpark spark, String code, String saved) {
    Matcher query = QUERY.matcher(code);
    assertThat(query.find()).isTrue();
    DataFrameWriter<Row> writer =
        spark.session().sql(query.group(1)).write().format("weft").mode("overwrite");
    List<MatchResult> options = OPTION.matcher(code).results().toList();
    assertThat(options).hasSize(4);
    options.forEach(option -> writer.option(option.group(1), option.group(2)));
    assertThat(code).contains(".save(\"" + SAVED + "\")");
    writer.save(saved);
  }

  private Process train(Path training, int rank, String port) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(PythonScript.interpreterWith("torch"), training.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    // What torchrun sets.
    builder
        .environment()
        .putAll(
            Map.of(
                "RANK", Integer.toString(rank),
                "WORLD_SIZE", "2",
                "MASTER_ADDR", "127.0.0.1",
                "MASTER_PORT", port,
                "GLOO_SOCKET_IFNAME", "lo",
                "OMP_NUM_THREADS", "1",
                "PYTHONPATH", ROOT.resolve("spark-plugin/src/main/python").toString()));
    return builder.start();
  }

  private static String freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return Integer.toString(socket.getLocalPort());
    }
  }

  private static List<Double> losses(Process rank) throws Exception {
    return Pattern.compile("loss ([0-9.]+)")
        .matcher(Scripts.output(rank))
        .results()
        .map(found -> Double.valueOf(found.group(1)))
        .toList();
  }
}
