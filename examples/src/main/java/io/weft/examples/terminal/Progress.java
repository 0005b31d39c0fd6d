package io.weft.examples.terminal;

import java.io.PrintStream;
import java.time.Duration;

/**
 * Shows progress. On a terminal it overwrites one line. In a log or a pipe it writes plain lines,
 * and only for steps. Not thread-safe.
 */
public final class Progress {
  private static final String ERASE_LINE = "\r\u001b[2K";

  private final PrintStream out;
  private final boolean terminal;
  private final long start = System.nanoTime();

  /**
   * Writes to a stream.
   *
   * @param terminal whether the stream is a terminal with ANSI control codes
   */
  public Progress(PrintStream out, boolean terminal) {
    this.out = out;
    this.terminal = terminal;
  }

  /** Writes to the error stream; bin/weft sets whether that is a terminal. */
  public static Progress toErrors() {
    return new Progress(System.err, Boolean.getBoolean("weft.terminal"));
  }

  /** Shows that a step begins or ends: as a new line in a log, as the line on a terminal. */
  public void step(String text) {
    if (terminal) {
      overwrite(text);
    } else {
      out.println(stamped(text));
    }
  }

  /** Shows a part of the current step, on a terminal only. */
  public void detail(String text) {
    if (terminal) {
      overwrite(text);
    }
  }

  /** Prints a line that stays. */
  public void say(String text) {
    clear();
    out.println(text);
  }

  /** Removes the progress line, so that other text can be printed. */
  public void clear() {
    if (terminal) {
      out.print(ERASE_LINE);
      out.flush();
    }
  }

  /** Returns the time since this object was created. */
  public Duration elapsed() {
    return Duration.ofNanos(System.nanoTime() - start);
  }

  private void overwrite(String text) {
    out.print(ERASE_LINE + stamped(text));
    out.flush();
  }

  private String stamped(String text) {
    return "[" + Units.clock(elapsed()) + "] " + text;
  }
}
