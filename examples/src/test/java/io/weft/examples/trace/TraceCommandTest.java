package io.weft.examples.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.examples.trace.TraceCommand.Merged;
import io.weft.shuffle.peer.ShuffleEvents;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import jdk.jfr.Recording;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceCommandTest {
  @TempDir private Path folder;

  /** Records two writes, and two fetches of which the second begins before the first ends. */
  private Path recording(String executor) throws IOException {
    Path file = folder.resolve(executor + ".jfr");
    try (Recording recording = new Recording()) {
      List.of("Executor", "Write", "Fetch").forEach(name -> recording.enable("weft." + name));
      recording.start();
      ShuffleEvents.Executor identity = new ShuffleEvents.Executor();
      identity.executor = executor;
      identity.host = "host-" + executor;
      identity.server = "";
      identity.commit();
      write(10);
      write(32);
      ShuffleEvents.Fetch first = ShuffleEvents.Fetch.start();
      ShuffleEvents.Fetch second = ShuffleEvents.Fetch.start();
      second.end();
      first.commit();
      second.commit();
      recording.stop();
      recording.dump(file);
    }
    return file;
  }

  private static void write(long bytes) {
    ShuffleEvents.Write event = ShuffleEvents.Write.start();
    event.shuffleId = 7;
    event.bytes = bytes;
    event.commit();
  }

  private JsonNode events(Path trace) throws IOException {
    return new ObjectMapper().readTree(trace.toFile()).at("/traceEvents");
  }

  private static List<JsonNode> named(JsonNode events, String name) {
    return events.findParents("name").stream()
        .filter(event -> event.at("/name").asText().equals(name))
        .toList();
  }

  @Test
  void eventsOfAllFilesAreInTheTrace() throws IOException {
    Path out = folder.resolve("trace.json");
    Merged merged = TraceCommand.merge(List.of(recording("1"), recording("2")), out);
    assertThat(merged).isEqualTo(new Merged(8, 2, List.of()));
    JsonNode events = events(out);
    assertThat(named(events, "process_name"))
        .extracting(event -> event.at("/args/name").asText())
        .containsExactly("executor 1 (host-1)", "executor 2 (host-2)");
    assertThat(named(events, "Write"))
        .extracting(event -> event.at("/args/bytes").asLong())
        .containsExactly(10L, 32L, 10L, 32L);
    assertThat(named(events, "Write"))
        .allSatisfy(
            event -> {
              assertThat(event.at("/ph").asText()).isEqualTo("X");
              assertThat(event.at("/ts").asDouble()).isNotNegative();
              assertThat(event.at("/dur").asDouble()).isNotNegative();
              assertThat(event.at("/args/shuffleId").asInt()).isEqualTo(7);
            });
  }

  @Test
  void fetchesThatOverlapHaveLanesOfTheirOwn() throws IOException {
    Path out = folder.resolve("trace.json");
    Merged unused = TraceCommand.merge(List.of(recording("1")), out);
    assertThat(named(events(out), "Fetch"))
        .extracting(event -> event.at("/tid").asLong())
        .doesNotHaveDuplicates();
  }

  @Test
  void aFileThatIsNoRecordingIsNamed() throws IOException {
    Path text = Files.writeString(folder.resolve("text"), "no recording");
    Path empty = Files.createFile(folder.resolve("empty"));
    Path out = folder.resolve("trace.json");
    for (Path bad : List.of(text, empty, folder, folder.resolve("absent"))) {
      assertThatThrownBy(() -> TraceCommand.merge(List.of(bad), out))
          .isInstanceOf(IOException.class)
          .hasMessageStartingWith(bad + " is ");
    }
    assertThat(out).doesNotExist();
  }

  @Test
  void filesThatAreNoRecordingsAreLeftOut() throws IOException {
    Path empty = Files.createFile(folder.resolve("killed.jfr"));
    Path text = Files.writeString(folder.resolve("text"), "no recording");
    Path out = folder.resolve("trace.json");
    Merged merged = TraceCommand.merge(List.of(empty, recording("1"), text), out);
    assertThat(merged.events()).isEqualTo(4);
    assertThat(merged.executors()).isEqualTo(1);
    assertThat(merged.warnings())
        .satisfiesExactly(
            warning -> assertThat(warning).startsWith(empty + " is empty"),
            warning -> assertThat(warning).startsWith(text + " is no recording"));
  }

  @Test
  void aRecordingWithoutEventsOfWeftIsAnError() throws IOException {
    Path file = folder.resolve("other.jfr");
    try (Recording recording = new Recording()) {
      recording.start();
      recording.stop();
      recording.dump(file);
    }
    Path out = folder.resolve("trace.json");
    assertThatThrownBy(() -> TraceCommand.merge(List.of(file), out))
        .hasMessageContaining("no events of Weft")
        .hasMessageContaining("spark.weft.trace.folder");
    assertThat(out).doesNotExist();
    Merged both = TraceCommand.merge(List.of(file, recording("1")), out);
    assertThat(both.warnings()).containsExactly(file + " has no events of Weft");
    assertThat(both.events()).isEqualTo(4);
  }

  @Test
  void aFileThatIsCutOffIsNamedAndReadUpToThere() throws IOException {
    byte[] whole = Files.readAllBytes(recording("1"));
    byte[] half = Arrays.copyOf(whole, whole.length / 2);
    Path cut = Files.write(folder.resolve("cut.jfr"), half);
    Path out = folder.resolve("trace.json");
    assertThatThrownBy(() -> TraceCommand.merge(List.of(cut), out))
        .hasMessageContaining(cut + " is cut off");
    Path second = folder.resolve("second.jfr");
    try (OutputStream chunks = Files.newOutputStream(second)) {
      chunks.write(whole);
      chunks.write(half);
    }
    Merged merged = TraceCommand.merge(List.of(second), out);
    // The JDK's reader looks ahead, so the last event before the cut is lost as well.
    assertThat(merged.events()).isBetween(3L, 4L);
    assertThat(merged.warnings()).singleElement().asString().contains(second + " is cut off");
    assertThat(events(out)).isNotEmpty();
  }
}
