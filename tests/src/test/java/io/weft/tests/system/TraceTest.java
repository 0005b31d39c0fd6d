package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.examples.trace.TraceCommand;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The recordings of executors in a real job, and the trace that is made of them. */
class TraceTest {
  /** Each JVM has its own clock. */
  private static final double CLOCKS_DIFFER_MICROS = 100_000;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @TempDir private Path folder;

  private static long sum(List<JsonNode> events, String field) {
    return events.stream().mapToLong(event -> event.at("/args/" + field).longValue()).sum();
  }

  private static Predicate<JsonNode> path(String path) {
    return event -> event.at("/args/path").asText().equals(path);
  }

  private List<JsonNode> trace() throws IOException {
    List<String> arguments = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      files.map(Path::toString).filter(name -> name.endsWith(".jfr")).forEach(arguments::add);
    }
    assertThat(arguments).hasSize(WeftCluster.EXECUTORS);
    Path out = folder.resolve("trace.json");
    arguments.addAll(List.of("--out", out.toString()));
    assertThat(new CommandLine(new TraceCommand()).execute(arguments.toArray(String[]::new)))
        .isZero();
    List<JsonNode> events = new ArrayList<>();
    new ObjectMapper()
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .readTree(out.toFile())
        .at("/traceEvents")
        .forEach(events::add);
    return events;
  }

  private static List<JsonNode> named(List<JsonNode> events, String name) {
    return events.stream().filter(event -> event.at("/name").asText().equals(name)).toList();
  }

  @Test
  void eventsHaveTheBytesThatMetricsCount() throws IOException {
    WeftCluster cluster =
        new WeftCluster(WORKSPACE)
            .set("spark.weft.transport", "tcp")
            .set("spark.weft.trace.folder", folder.toString());
    long own;
    long network;
    try {
      cluster.start();
      assertThat(cluster.session().range(200_000).toDF().repartition(16).toJavaRDD().count())
          .isEqualTo(200_000);
      own = cluster.sum("localBytes");
      network = cluster.sum("remoteBytes");
      // They write the ends of their recordings.
      List<ExecutorProcess> ending = cluster.executors();
      cluster.stop();
      ending.forEach(executor -> executor.awaitEnd(Duration.ofMinutes(3)));
    } finally {
      cluster.stop();
    }
    assertThat(network).isPositive();
    List<JsonNode> events = trace();
    List<JsonNode> reads = named(events, "Read");
    assertThat(sum(reads.stream().filter(path("own")).toList(), "bytes")).isEqualTo(own);
    assertThat(sum(reads.stream().filter(path("tcp")).toList(), "bytes")).isEqualTo(network);
    assertThat(sum(reads, "rows")).isEqualTo(200_000);
    assertThat(sum(named(events, "Fetch"), "bytes")).isEqualTo(network);
    assertThat(sum(named(events, "Serve"), "bytes")).isEqualTo(network);
    assertThat(sum(named(events, "Write"), "bytes")).isEqualTo(own + network);
    assertThat(sum(named(events, "Publish"), "bytes")).isEqualTo(own + network);
    assertThat(named(events, "process_name"))
        .extracting(event -> event.at("/args/executor").asText())
        .containsExactlyInAnyOrder("0", "1");
    assertThat(named(events, "Fetch"))
        .allSatisfy(fetch -> assertThat(fetch.at("/args/failure").asText()).isEmpty());
    arrowsLeadFromAnswersToFetches(events);
    slicesOfAThreadNest(events);
  }

  /** Viewers show a slice that begins within another of its thread, and ends after it, wrongly. */
  private static void slicesOfAThreadNest(List<JsonNode> events) {
    Map<String, List<JsonNode>> threads =
        events.stream()
            .filter(event -> event.at("/ph").asText().equals("X"))
            .collect(Collectors.groupingBy(event -> event.at("/pid") + " " + event.at("/tid")));
    assertThat(threads).hasSizeGreaterThan(WeftCluster.EXECUTORS);
    for (List<JsonNode> slices : threads.values()) {
      slices.sort(
          Comparator.comparingLong((JsonNode slice) -> nanos(slice, "ts"))
              .thenComparing(slice -> nanos(slice, "dur"), Comparator.reverseOrder()));
      Deque<Long> open = new ArrayDeque<>();
      for (JsonNode slice : slices) {
        long start = nanos(slice, "ts");
        long end = start + nanos(slice, "dur");
        assertThat(start).isNotNegative();
        assertThat(end).isGreaterThanOrEqualTo(start);
        while (!open.isEmpty() && open.peek() <= start) {
          open.pop();
        }
        assertThat(open).as("ends around %s", slice).allMatch(outer -> outer >= end);
        open.push(end);
      }
    }
  }

  private static long nanos(JsonNode slice, String field) {
    return slice.at("/" + field).decimalValue().movePointRight(3).longValueExact();
  }

  private static void arrowsLeadFromAnswersToFetches(List<JsonNode> events) {
    List<JsonNode> arrows = named(events, "blocks");
    List<JsonNode> starts = arrows.stream().filter(a -> a.at("/ph").asText().equals("s")).toList();
    List<JsonNode> ends = arrows.stream().filter(a -> a.at("/ph").asText().equals("f")).toList();
    assertThat(starts).hasSameSizeAs(named(events, "Serve"));
    assertThat(ends)
        .extracting(end -> end.at("/id").longValue())
        .containsExactlyInAnyOrderElementsOf(
            starts.stream().map(start -> start.at("/id").longValue()).toList());
    for (JsonNode start : starts) {
      JsonNode end =
          ends.stream().filter(e -> e.at("/id").equals(start.at("/id"))).findFirst().orElseThrow();
      assertThat(end.at("/pid").intValue()).isNotEqualTo(start.at("/pid").intValue());
      assertThat(end.at("/ts").doubleValue())
          .isGreaterThan(start.at("/ts").doubleValue() - CLOCKS_DIFFER_MICROS);
    }
  }
}
