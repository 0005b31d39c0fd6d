package io.weft.examples.train;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * The losses of a training as a text file, a line for each step. Rank 0 appends to it while others
 * read. A restarted training repeats some steps; the last line of a step counts.
 *
 * @param file created with the first line
 */
public record LossLog(Path file) {
  private static final int FIELDS = 2;
  private static final String TOTAL = "total";

  /** Writes the total number of steps. */
  void begin(long steps) throws IOException {
    write(TOTAL + "," + steps);
  }

  void append(long step, double loss) throws IOException {
    write(step + "," + loss);
  }

  private void write(String line) throws IOException {
    Files.writeString(file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }

  /** Returns the total number of steps; 0 before it is known. */
  long total() throws IOException {
    return lines().stream()
        .filter(line -> line.startsWith(TOTAL + ","))
        .mapToLong(line -> Long.parseLong(line.substring(TOTAL.length() + 1)))
        .max()
        .orElse(0);
  }

  /** Returns the losses so far by step, counted through all epochs. */
  public NavigableMap<Long, Double> read() throws IOException {
    NavigableMap<Long, Double> losses = new TreeMap<>();
    for (String line : lines()) {
      String[] fields = line.split(",", -1);
      if (fields.length == FIELDS && !fields[0].equals(TOTAL)) {
        losses.put(Long.parseLong(fields[0]), Double.parseDouble(fields[1]));
      }
    }
    return losses;
  }

  /** Returns complete lines only, because rank 0 may still be writing the last line. */
  private List<String> lines() throws IOException {
    String text;
    try {
      text = Files.readString(file);
    } catch (NoSuchFileException e) {
      return List.of();
    }
    return text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
  }
}
