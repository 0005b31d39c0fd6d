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
 * The loss of every step as a text file, a line each, which rank 0 appends to while others read. A
 * training that was restarted says some steps again; the last word counts.
 *
 * @param file made by the first line
 */
public record LossLog(Path file) {
  private static final int FIELDS = 2;
  private static final String TOTAL = "total";

  /** Says how many steps there will be. */
  void begin(long steps) throws IOException {
    write(TOTAL + "," + steps);
  }

  void append(long step, double loss) throws IOException {
    write(step + "," + loss);
  }

  private void write(String line) throws IOException {
    Files.writeString(file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }

  /** How many steps there will be; 0 before that is known. */
  long total() throws IOException {
    return lines().stream()
        .filter(line -> line.startsWith(TOTAL + ","))
        .mapToLong(line -> Long.parseLong(line.substring(TOTAL.length() + 1)))
        .max()
        .orElse(0);
  }

  /** The losses so far by step, counted through all epochs; none before the first. */
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

  /** Whole lines only: the last one may be being written. */
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
