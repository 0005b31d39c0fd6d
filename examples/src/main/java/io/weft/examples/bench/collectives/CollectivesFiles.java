package io.weft.examples.bench.collectives;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Writes a report as files: for machines, for the documentation and to look at. */
final class CollectivesFiles {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private CollectivesFiles() {}

  /** Writes all of them to a folder, creating it, and returns their paths. */
  static List<Path> write(CollectivesReport report, Path folder) throws IOException {
    Files.createDirectories(folder);
    return List.of(
        Files.writeString(folder.resolve("collectives.json"), json(report) + "\n"),
        Files.writeString(
            folder.resolve("collectives.md"), new CollectivesTable(report).toMarkdown()),
        Files.writeString(folder.resolve("collectives.svg"), new CollectivesChart(report).toSvg()));
  }

  /** The report out of its JSON; what follows from it is worked out anew. */
  static CollectivesReport read(Path json) throws IOException {
    return JSON.readerFor(CollectivesReport.class)
        .without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .readValue(json.toFile());
  }

  /** The report with what follows from it. */
  static String json(CollectivesReport report) throws IOException {
    ObjectNode tree = JSON.valueToTree(report);
    for (int i = 0; i < report.results().size(); i++) {
      CaseResult result = report.results().get(i);
      ObjectNode node = (ObjectNode) tree.path("results").path(i);
      ((ObjectNode) node.path("test")).put("bytes", result.test().bytes());
      for (int j = 0; j < result.sides().size(); j++) {
        SideFigures side = result.sides().get(j);
        double seconds = side.seconds().median();
        ObjectNode figures = (ObjectNode) node.path("sides").path(j);
        figures.put("algbw", result.test().algorithmBandwidth(seconds));
        figures.put("busbw", result.test().busBandwidth(seconds));
        figures.put("partOfCopy", result.test().algorithmBandwidth(seconds) / report.copyAlone());
        result.timesFaster(side).ifPresent(times -> figures.put("timesFaster", times));
      }
    }
    return JSON.writeValueAsString(tree);
  }
}
