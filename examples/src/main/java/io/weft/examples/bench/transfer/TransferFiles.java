package io.weft.examples.bench.transfer;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Writes a report as files: for machines and for the documentation. */
final class TransferFiles {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private TransferFiles() {}

  /** Writes all of them to a folder, creating it, and returns their paths. */
  static List<Path> write(TransferReport report, Path folder) throws IOException {
    Files.createDirectories(folder);
    return List.of(
        Files.writeString(folder.resolve("transfer.json"), JSON.writeValueAsString(report) + "\n"),
        Files.writeString(folder.resolve("transfer.md"), new TransferTable(report).toMarkdown()));
  }

  /** The report out of its JSON. */
  static TransferReport read(Path json) throws IOException {
    return JSON.readerFor(TransferReport.class)
        .without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .readValue(json.toFile());
  }
}
