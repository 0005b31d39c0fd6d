package io.weft.examples.measure;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.examples.terminal.TextTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The result of a benchmark: a record that JSON keeps and restores. Immutable. */
public interface Report {
  /** The name of the report's files, without the extension. */
  String fileName();

  /** The report for people. */
  Text text();

  /** Whether all checks passed; decides the exit status. */
  boolean passed();

  /** A chart in SVG; empty if there is none. */
  default Optional<String> chart() {
    return Optional.empty();
  }

  /** Adds derived values to the JSON form of this report. Reading ignores them. */
  default void addDerived(ObjectNode json) {}

  /** Returns the JSON form. */
  default String toJson() throws IOException {
    ObjectNode tree = mapper().valueToTree(this);
    addDerived(tree);
    return mapper().writeValueAsString(tree);
  }

  /**
   * Writes all forms to a folder, which it creates, and returns their paths: JSON first. An
   * interruption leaves each file as it was or as it has to be.
   */
  default List<Path> write(Path folder) throws IOException {
    Files.createDirectories(folder);
    List<Path> files = new ArrayList<>();
    files.add(replace(folder.resolve(fileName() + ".json"), toJson() + "\n"));
    files.add(replace(folder.resolve(fileName() + ".md"), text().toMarkdown()));
    Optional<String> svg = chart();
    if (svg.isPresent()) {
      files.add(replace(folder.resolve(fileName() + ".svg"), svg.get()));
    }
    return files;
  }

  private static Path replace(Path file, String text) throws IOException {
    Path part = file.resolveSibling("." + file.getFileName() + ".part");
    Files.writeString(part, text);
    return Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
  }

  /**
   * Restores a report from its JSON form. Derived values are computed again.
   *
   * @throws IOException with the file's name if it cannot be read or has another form
   */
  static <R extends Report> R read(Path json, Class<R> type) throws IOException {
    try {
      return mapper()
          .readerFor(type)
          .without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .readValue(json.toFile());
    } catch (JsonProcessingException e) {
      throw new IOException(json + " is no report of this command: " + e.getOriginalMessage(), e);
    }
  }

  private static ObjectMapper mapper() {
    return new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
  }

  /**
   * A report for people, as plain text or Markdown.
   *
   * @param heading the first line; empty for none
   * @param tables in order
   * @param notes a line or a paragraph each
   */
  record Text(String heading, List<TextTable> tables, List<String> notes) {
    public Text {
      tables = List.copyOf(tables);
      notes = List.copyOf(notes);
    }

    /** For a terminal. */
    public String toText() {
      return document(false);
    }

    /** For documentation. */
    public String toMarkdown() {
      return document(true);
    }

    private String document(boolean markdown) {
      StringBuilder text = new StringBuilder();
      if (!heading.isEmpty()) {
        text.append(heading).append("\n\n");
      }
      for (TextTable table : tables) {
        text.append(markdown ? table.toMarkdown() : table.toText()).append('\n');
      }
      return text.append(String.join(markdown ? "\n\n" : "\n", notes)).append('\n').toString();
    }
  }
}
