package io.weft.tests.support;

import io.weft.tests.application.Stage;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A process whose output, both streams together, is kept line by line. Tests wait for lines, and
 * failures show the output. A thread reads the output; all methods may be called from any thread.
 * Closing kills the process and its descendants.
 */
public final class ChildProcess implements AutoCloseable {
  private static final int SHOWN_LINES = 150;

  private final String name;
  private final Process process;
  private final List<String> lines = new ArrayList<>();
  private final Thread reader;
  private boolean ended;

  private ChildProcess(String name, Process process) {
    this.name = name;
    this.process = process;
    this.reader = new Thread(this::readAll, "output of " + name);
    this.reader.setDaemon(true);
  }

  /**
   * Starts a process.
   *
   * @param name its name in messages
   * @param folder its working folder
   * @param environment variables in addition to this process's own
   */
  public static ChildProcess start(
      String name, List<String> command, Path folder, Map<String, String> environment) {
    ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
    builder.environment().putAll(environment);
    builder.redirectErrorStream(true);
    try {
      ChildProcess child = new ChildProcess(name, builder.start());
      child.reader.start();
      return child;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs a short command and returns its output; an exit status other than 0 is an error. */
  public static String run(String... command) {
    try (ChildProcess child = start(command[0], List.of(command), Path.of("/"), Map.of())) {
      child.awaitSuccess(Duration.ofMinutes(3));
      return child.output();
    }
  }

  /** The process id. */
  public long pid() {
    return process.pid();
  }

  /** Returns whether it still runs. */
  public boolean isAlive() {
    return process.isAlive();
  }

  /** Sends a line to its standard input. */
  public void send(String line) {
    try {
      process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
      process.getOutputStream().flush();
    } catch (IOException e) {
      throw new UncheckedIOException(describe("does not take input"), e);
    }
  }

  /**
   * Waits until the application has reported a point of {@link Stage}; returns the rest of that
   * line.
   */
  public String awaitStage(String point, Duration limit) {
    Matcher found = awaitLine(Pattern.quote(Stage.MARK + point) + "(.*)", limit);
    return found.group(1).trim();
  }

  /**
   * Waits for the first line in which the expression is found; the end of the process before that
   * is an error.
   */
  public Matcher awaitLine(String expression, Duration limit) {
    Pattern pattern = Pattern.compile(expression);
    long deadline = System.nanoTime() + limit.toNanos();
    synchronized (lines) {
      for (int next = 0; ; next++) {
        awaitMore(next, deadline, expression);
        Matcher matcher = pattern.matcher(lines.get(next));
        if (matcher.find()) {
          return matcher;
        }
      }
    }
  }

  private void awaitMore(int index, long deadline, String expected) {
    try {
      while (lines.size() <= index) {
        long millis = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (ended || millis <= 0) {
          throw new AssertionError(
              describe((ended ? "ended" : "timed out") + " without: " + expected));
        }
        lines.wait(millis);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(describe("was not waited for: interrupted"), e);
    }
  }

  /** Waits for the end; returns the exit status. */
  public int awaitExit(Duration limit) {
    try {
      if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
        throw new AssertionError(describe("still runs after " + limit));
      }
      reader.join(limit.toMillis());
      return process.exitValue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(describe("was not waited for: interrupted"), e);
    }
  }

  /** Asks the process to end (SIGTERM) and waits until it has, so that Spark cleans up. */
  public void terminate(Duration limit) {
    process.destroy();
    awaitExit(limit);
  }

  /** Waits for the end and requires exit status 0. */
  public void awaitSuccess(Duration limit) {
    int status = awaitExit(limit);
    if (status != 0) {
      throw new AssertionError(describe("ended with status " + status));
    }
  }

  /** All output so far. */
  public String output() {
    return String.join("\n", lines(line -> true));
  }

  /** The lines so far that match. */
  public List<String> lines(Predicate<String> matching) {
    synchronized (lines) {
      return lines.stream().filter(matching).toList();
    }
  }

  /** The lines that the application sent through {@link Stage} after this word, in order. */
  public List<String> said(String word) {
    String start = Stage.MARK + word + " ";
    return lines(line -> line.startsWith(start)).stream()
        .map(line -> line.substring(start.length()))
        .toList();
  }

  /** A message about this process, with the end of its output. */
  public String describe(String what) {
    List<String> all = lines(line -> true);
    List<String> tail = all.subList(Math.max(0, all.size() - SHOWN_LINES), all.size());
    return name + " (process " + pid() + ") " + what + "\n    | " + String.join("\n    | ", tail);
  }

  private void readAll() {
    try (BufferedReader output =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        add(line);
      }
    } catch (IOException e) {
      add("(output incomplete: " + e + ")");
    } finally {
      synchronized (lines) {
        ended = true;
        lines.notifyAll();
      }
    }
  }

  private void add(String line) {
    synchronized (lines) {
      lines.add(line);
      lines.notifyAll();
    }
  }

  @Override
  public void close() {
    List<ProcessHandle> family = process.descendants().toList();
    process.destroyForcibly();
    family.forEach(ProcessHandle::destroyForcibly);
    awaitExit(Duration.ofMinutes(3));
  }
}
