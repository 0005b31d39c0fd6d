package io.weft.examples.terminal;

import java.io.PrintStream;
import java.time.Duration;

/**
 * Says what is going on. On a terminal, one line that is written over; elsewhere (a log, a pipe)
 * plain lines, and only for what takes long. Not thread-safe.
 */
public final class Progress {
  private static final String ERASE_LINE = "\r\u001b[2K";

  private final PrintStream out;
  private final boolean terminal;
  private final long start = System.nanoTime();

  /**
   * Writes to a stream.
   *
   * @param terminal whether a person sees it, on something that understands ANSI control codes
   */
  public Progress(PrintStream out, boolean terminal) {
    this.out = out;
    this.terminal = terminal;
  }

  /** To the error stream; bin/weft says whether that is a terminal. */
  public static Progress toErrors() {
    return new Progress(System.err, Boolean.getBoolean("weft.terminal"));
  }

  /** A step begins or is done: a line of its own in a log, the current line on a terminal. */
  public void step(String text) {
    if (terminal) {
      overwrite(text);
    } else {
      out.println(stamped(text));
    }
  }

  /** A part of the present step: shown on a terminal only. */
  public void detail(String text) {
    if (terminal) {
      overwrite(text);
    }
  }

  /** A line that stays, on a terminal as in a log. */
  public void say(String text) {
    clear();
    out.println(text);
  }

  /** Takes the progress line away before something else is printed. */
  public void clear() {
    if (terminal) {
      out.print(ERASE_LINE);
      out.flush();
    }
  }

  /** How long this has been going on. */
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
