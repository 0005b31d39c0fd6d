package io.weft.examples.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Writes a report as files: for machines, for the documentation and to look at. */
final class ReportFiles {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private ReportFiles() {}

  /** Writes all of them to a folder, creating it, and returns their paths. */
  static List<Path> write(BenchReport report, Path folder) throws IOException {
    Files.createDirectories(folder);
    return List.of(
        Files.writeString(folder.resolve("shuffle.json"), json(report) + "\n"),
        Files.writeString(folder.resolve("shuffle.md"), new ReportTable(report).toMarkdown()),
        Files.writeString(folder.resolve("shuffle.svg"), new ReportChart(report).toSvg()));
  }

  /** The report with what follows from it: how every side compares with Spark and with a copy. */
  static String json(BenchReport report) throws IOException {
    ObjectNode tree = JSON.valueToTree(report);
    for (int i = 0; i < report.results().size(); i++) {
      WorkloadResult result = report.results().get(i);
      for (int j = 0; j < result.sides().size(); j++) {
        SideResult side = result.sides().get(j);
        ObjectNode node = (ObjectNode) tree.path("results").path(i).path("sides").path(j);
        node.put("timesFaster", result.speedup(side));
        node.put("timesLessCpu", result.cpuSpeedup(side));
        result.timesCopy(side).ifPresent(times -> node.put("timesCopy", times));
      }
    }
    return JSON.writeValueAsString(tree);
  }
}
