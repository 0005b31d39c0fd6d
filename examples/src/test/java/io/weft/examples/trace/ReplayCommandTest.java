package io.weft.examples.trace;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.Weft;
import io.weft.examples.measure.Report;
import io.weft.examples.trace.ReplayReport.ReplayedShuffle;
import io.weft.examples.trace.ReplayReport.ReplayedTransfers;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class ReplayCommandTest {
  @TempDir private Path folder;
  private final StringWriter err = new StringWriter();

  private int run(String... arguments) {
    List<String> all = new ArrayList<>(List.of(arguments));
    all.addAll(List.of("--runs", "1", "--out", folder.resolve("out").toString()));
    return new CommandLine(new ReplayCommand())
        .setErr(new PrintWriter(err, true))
        .setExecutionExceptionHandler(
            (failure, command, parsed) -> {
              command.getErr().println(failure.getMessage());
              return CommandLine.ExitCode.SOFTWARE;
            })
        .execute(all.toArray(String[]::new));
  }

  private static String process(int pid, String host) {
    return """
    {"name":"process_name","ph":"M","pid":%d,"tid":0,"args":{"executor":"%d","host":"%s"}}\
    """
        .formatted(pid, pid, host);
  }

  private static String write(int pid, long map, long bytes) {
    return """
    {"name":"Write","ph":"X","pid":%d,"tid":5,"ts":%d,"dur":2.5,"args":
    {"shuffleId":3,"mapId":%d,"partitions":2,"chunks":2,"bytes":%d}}\
    """
        .formatted(pid, map, map, bytes);
  }

  private static String read(int pid, int reader, int at, long map, int partition, long bytes) {
    String path = pid == map ? "own" : map == 3 ? "tcp" : "shm";
    return """
    {"name":"Read","ph":"X","pid":%d,"tid":6,"ts":%d,"dur":3,"args":{"shuffleId":3,"reader":%d,
    "mapId":%d,"firstPartition":%d,"lastPartition":%d,"chunks":%d,"rows":9,"bytes":%d,
    "peer":"%d","path":"%s"}}\
    """
        .formatted(
            pid, at, reader, map, partition, partition, Math.min(2, bytes), bytes, map, path);
  }

  private static String transfer(
      String direction, int pid, int peer, int at, int micros, int key, int bytes, String failure) {
    return """
    {"name":"Transfer","ph":"X","pid":%d,"tid":2000000000,"ts":%d,"dur":%d,"args":{
    "direction":"%s","key":%d,"bytes":%d,"device":"executor %d/device 0",
    "peer":"executor %d/device 0","failure":"%s"}}\
    """
        .formatted(pid, at, micros, direction, key, bytes, pid, peer, failure);
  }

  /** Both ends of one transfer, of which the receive starts later. */
  private static String transfers(int source, int destination, int at, int key, int bytes) {
    return transfer("send", source, destination, at, 9, key, bytes, "")
        + ",\n"
        + transfer("receive", destination, source, at + 1, 8, key, bytes, "");
  }

  /** Executors 1 and 2 on one host read from each other and from executor 3 on another one. */
  private Path trace() throws IOException {
    return trace(
        process(1, "a"),
        process(2, "a"),
        process(3, "b"),
        write(1, 1, 300_000),
        write(2, 2, 70_000),
        write(3, 3, 100_001),
        read(1, 1, 10, 1, 0, 200_000),
        read(1, 1, 14, 3, 0, 60_000),
        read(1, 1, 18, 2, 0, 30_000),
        // The rest of the block that began at 14.
        read(1, 1, 22, 3, 0, 1),
        read(2, 1, 12, 2, 1, 40_000),
        read(2, 1, 16, 1, 1, 90_000),
        read(2, 1, 19, 3, 1, 40_000));
  }

  private Path trace(String... events) throws IOException {
    return Files.writeString(
        folder.resolve("trace.json"),
        "{\"otherData\":{\"weftTrace\":1},\"traceEvents\":[" + String.join(",\n", events) + "]}");
  }

  private ShuffleTotals replayed() throws IOException {
    Path report = folder.resolve("out").resolve("replay.json");
    ReplayedShuffle shuffle = Report.read(report, ReplayReport.class).shuffles().get(0);
    assertThat(shuffle.trace().written()).isEqualTo(470_001);
    assertThat(shuffle.trace().network()).isEqualTo(100_001);
    assertThat(shuffle.runs()).hasSize(1);
    return shuffle.runs().get(0);
  }

  @Test
  void theReplayMovesTheSameBytesOnTheSamePaths() throws IOException {
    assertThat(run(trace().toString())).isZero();
    ShuffleTotals replayed = replayed();
    assertThat(replayed.shuffle()).isEqualTo(3);
    assertThat(replayed.written()).isEqualTo(470_001);
    assertThat(replayed.own()).isEqualTo(240_000);
    assertThat(replayed.sameHost()).isEqualTo(120_000);
    assertThat(replayed.network()).isEqualTo(100_001);
    assertThat(replayed.wallNanos()).isPositive();
    assertThat(replayed.readNanos()).isPositive();
    assertThat(folder.resolve("out").resolve("replay.md"))
        .content()
        .contains("| 3 | trace | 470 kB | 240 kB | 120 kB | 100 kB |", "| replay | 470 kB |");
  }

  @Test
  void settingsAndScaleChangeTheReplay() throws IOException {
    assertThat(run(trace().toString(), "--conf", "spark.weft.transport=tcp", "--scale", "0.5"))
        .isZero();
    ShuffleTotals replayed = replayed();
    assertThat(replayed.own()).isEqualTo(120_000);
    assertThat(replayed.sameHost()).isZero();
    assertThat(replayed.network()).isEqualTo(110_001);
  }

  /** The recording of executor 2 is lost; executor 1 read its block in place, and 3's not. */
  @Test
  void executorsWithoutARecordingAreWhereTheirReadersWere() throws IOException {
    Path trace =
        trace(
            process(1, "a"),
            read(1, 1, 10, 1, 0, 200_000),
            read(1, 1, 14, 3, 0, 60_000),
            read(1, 1, 18, 2, 0, 30_000));
    assertThat(run(trace.toString())).isZero();
    Path report = folder.resolve("out").resolve("replay.json");
    ShuffleTotals replayed =
        Report.read(report, ReplayReport.class).shuffles().get(0).runs().get(0);
    assertThat(replayed.own()).isEqualTo(200_000);
    assertThat(replayed.sameHost()).isEqualTo(30_000);
    assertThat(replayed.network()).isEqualTo(60_000);
  }

  /** A segment has 1 MiB here; the rest of the output, which was not read, has 9 MB. */
  @Test
  void bytesThatWereNotReadAreWrittenInChunks() throws IOException {
    Path trace = trace(process(1, "a"), write(1, 1, 9_000_000), read(1, 1, 10, 1, 0, 200_000));
    assertThat(run(trace.toString(), "--conf", "spark.weft.memory.segmentSize=1m")).isZero();
    Path report = folder.resolve("out").resolve("replay.json");
    ShuffleTotals replayed =
        Report.read(report, ReplayReport.class).shuffles().get(0).runs().get(0);
    assertThat(replayed.written()).isEqualTo(9_000_000);
    assertThat(replayed.own()).isEqualTo(200_000);
  }

  /** Some overlap, one waits for others, two have the same key, and three ends have no other. */
  @Test
  void transfersMoveTheSameBytesBetweenTheSameExecutors() throws IOException {
    Path trace =
        trace(
            process(1, "a"),
            process(2, "a"),
            process(3, "b"),
            transfers(1, 2, 10, 5, 100_000),
            transfers(1, 2, 12, 6, 40_000),
            transfers(1, 2, 30, 5, 10_000),
            transfers(1, 3, 11, 5, 70_000),
            transfers(3, 1, 40, 5, 30_000),
            transfer("send", 1, 3, 50, 9, 7, 1_000, "executor 3 has ended"),
            transfer("receive", 3, 1, 50, 9, 7, 1_000, "executor 1 has ended"),
            transfer("send", 2, 3, 50, 9, 7, 1_000, ""));
    assertThat(run(trace.toString())).isZero();
    ReplayedTransfers moved = replayedTransfers();
    assertThat(moved.trace()).isEqualTo(new TransferTotals(5, 150_000, 100_000, 5 * 8_000, 39_000));
    assertThat(moved.leftOut()).isEqualTo(3);
    assertThat(moved.runs()).hasSize(1);
    TransferTotals replayed = moved.runs().get(0);
    assertThat(replayed.transfers()).isEqualTo(5);
    assertThat(replayed.sameHost()).isEqualTo(150_000);
    assertThat(replayed.network()).isEqualTo(100_000);
    assertThat(replayed.transferNanos()).isPositive();
    assertThat(replayed.wallNanos()).isPositive();
    assertThat(folder.resolve("out").resolve("replay.md"))
        .content()
        .contains("| 5 | trace | 150 kB | 100 kB |", "| replay | 150 kB | 100 kB |")
        .contains("Left out: 3 ends")
        .doesNotContain("| shuffle |");
  }

  @Test
  void transfersFollowShufflesAndTheScale() throws IOException {
    Path trace =
        trace(
            process(1, "a"),
            process(3, "b"),
            read(1, 1, 10, 1, 0, 200_000),
            transfers(1, 3, 11, 5, 70_000),
            transfers(3, 1, 11, 5, 30_000));
    assertThat(
            run(
                trace.toString(),
                "--scale",
                "0.1",
                "--conf",
                "spark.weft.transfers.batchSize=1k",
                "--conf",
                "spark.weft.transfers.deadline=20s"))
        .isZero();
    TransferTotals replayed = replayedTransfers().runs().get(0);
    assertThat(replayed.transfers()).isEqualTo(2);
    assertThat(replayed.network()).isEqualTo(10_000);
    assertThat(folder.resolve("out").resolve("replay.md"))
        .content()
        .contains("| 3 | trace | 0 B | 200 kB |", "| 2 | trace | 0 B | 100 kB |");
  }

  @Test
  void aTransferBeyondDirectMemoryFailsWithAdvice() throws Exception {
    Path trace = trace(process(1, "a"), process(2, "a"), transfers(1, 2, 10, 5, 200_000_000));
    Path output = folder.resolve("output");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(option -> option.startsWith("--add-opens"))
        .forEach(command::add);
    command.addAll(List.of("-XX:MaxDirectMemorySize=100m", "-cp"));
    command.add(System.getProperty("java.class.path"));
    command.addAll(List.of(Weft.class.getName(), "replay", trace.toString()));
    command.addAll(List.of("--out", folder.resolve("out").toString()));
    Process replay =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      assertThat(replay.waitFor(2, TimeUnit.MINUTES)).isTrue();
    } finally {
      replay.destroyForcibly();
    }
    assertThat(output)
        .content()
        .contains("no direct memory for the largest transfer, 200000000 bytes: set --scale")
        .doesNotContain("OutOfMemoryError");
    assertThat(replay.exitValue()).isEqualTo(1);
  }

  private ReplayedTransfers replayedTransfers() throws IOException {
    Path report = folder.resolve("out").resolve("replay.json");
    return Report.read(report, ReplayReport.class).transfers();
  }

  @Test
  void impossibleFiguresAreNamed() throws IOException {
    String good = read(1, 1, 10, 1, 0, 200_000);
    List<String> bad =
        List.of(
            good.replace("\"chunks\":2", "\"chunks\":0"),
            good.replace("\"bytes\":200000", "\"bytes\":-1"),
            good.replace("\"bytes\":200000", "\"bytes\":1"),
            good.replace("\"firstPartition\":0", "\"firstPartition\":-1"),
            transfer("send", 1, 2, 10, 9, 5, 0, ""),
            transfer("send", 1, 2, 10, 9, 5, 7, "").replace("/device 0", ""));
    for (String event : bad) {
      assertThat(event).isNotEqualTo(good);
      assertThat(run(trace(process(1, "a"), event).toString())).as(event).isEqualTo(1);
    }
    assertThat(err.toString().split("impossible figures", -1)).hasSize(bad.size() + 1);
    assertThat(run(trace(process(2, "a"), good).toString())).isEqualTo(1);
    assertThat(err.toString()).contains("does not name the executor of process 1");
    String[] many =
        Stream.concat(
                Stream.of(good), IntStream.rangeClosed(1, 65).mapToObj(pid -> process(pid, "a")))
            .toArray(String[]::new);
    assertThat(run(trace(many).toString())).isEqualTo(1);
    assertThat(err.toString()).contains("at most 64; the trace has 65");
  }

  @Test
  void wrongSettingsAreNamed() throws IOException {
    assertThat(run(trace().toString(), "--conf", "spark.weft.transprt=tcp")).isEqualTo(1);
    assertThat(run(trace().toString(), "--conf", "spark.weft.batch.rows=9")).isEqualTo(1);
    assertThat(run(trace().toString(), "--scale", "0")).isEqualTo(1);
    assertThat(err.toString())
        .contains("did you mean spark.weft.transport?")
        .contains("spark.weft.batch.rows has no effect on a replay")
        .contains("--scale has to be above 0");
  }

  @Test
  void badTracesAreNamed() throws IOException {
    Path text = Files.writeString(folder.resolve("text"), "no trace");
    Path other = Files.writeString(folder.resolve("other.json"), "{\"traceEvents\":[]}");
    String whole = Files.readString(trace());
    Path cut =
        Files.writeString(folder.resolve("cut.json"), whole.substring(0, whole.length() / 2));
    Path empty =
        Files.writeString(
            folder.resolve("empty.json"),
            "{\"otherData\":{\"weftTrace\":1},\"traceEvents\":[" + process(1, "a") + "]}");
    Path twice =
        Files.writeString(
            folder.resolve("twice.json"),
            whole.replace("\"executor\":\"2\"", "\"executor\":\"1\""));
    for (Path bad : List.of(text, other, cut, empty, twice, folder.resolve("absent"))) {
      assertThat(run(bad.toString())).as(bad.toString()).isEqualTo(1);
    }
    assertThat(err.toString())
        .contains(text + " is no trace of bin/weft trace")
        .contains(other + " is no trace of bin/weft trace")
        .contains(cut + " is cut off or damaged")
        .contains(empty + " has no reads of shuffles and no transfers")
        .contains(twice + " has two executors 1")
        .contains("absent");
  }
}
