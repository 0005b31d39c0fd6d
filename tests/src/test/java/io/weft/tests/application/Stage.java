package io.weft.tests.application;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * Synchronizes an application with the test that started it: lines on standard output, lines back
 * on standard input.
 */
public final class Stage {
  /** Starts each line that is meant for the test. */
  public static final String MARK = "@weft-test ";

  private static final BufferedReader INPUT =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

  private Stage() {}

  /** Sends the test a line. */
  public static void send(String line) {
    System.out.println(MARK + line);
    System.out.flush();
  }

  /**
   * Reports that a point is reached, then waits until the test sends a line; the end of the test
   * counts as one.
   */
  public static void pause(String point) {
    send(point);
    try {
      INPUT.readLine();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
