package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.probe.ProbeOptions;
import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** A query for GPUs on a machine without GPUs, in a separate JVM. */
final class GpulessProcess {
  private static final int ROWS = 1000;
  private static final int TIMEOUT_SECONDS = 120;

  private GpulessProcess() {}

  /** The classes that the process loaded, one per line. */
  static String loadedClasses(Path folder) throws IOException, InterruptedException {
    Path log = folder.resolve("classes.log");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.add("-Xlog:class+load:file=" + log + "::filesize=0");
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> argument.startsWith("--add-") || argument.startsWith("-XX:+Ignore"))
        .forEach(command::add);
    command.add("-D" + ProbeOptions.ROOT_PROPERTY + "=" + folder);
    command.add("-cp");
    command.add(
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")));
    command.add(GpulessProcess.class.getName());
    Path output = folder.resolve("output.txt");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).as("it ends").isTrue();
    } finally {
      process.destroyForcibly();
    }
    assertThat(process.exitValue()).as(Files.readString(output)).isZero();
    return Files.readString(log);
  }

  /** Main method of the child process. */
  public static void main(String[] args) {
    try (LocalSpark spark =
        LocalSpark.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"))) {
      Dataset<Row> rows = spark.session().range(ROWS).toDF();
      Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(4, col("id"));
      if (exchanged.collectAsList().size() != ROWS || Plans.wefts(exchanged).size() != 1) {
        throw new AssertionError(Plans.of(exchanged));
      }
    }
  }
}
