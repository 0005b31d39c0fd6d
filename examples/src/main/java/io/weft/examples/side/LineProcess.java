package io.weft.examples.side;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A child process that reads orders and writes answers, a line each. For one thread at a time. */
public final class LineProcess implements AutoCloseable {
  private static final Duration ANSWER_TIMEOUT = Duration.ofMinutes(2);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(30);
  private static final String ENDED = "ended";
  private static final List<String> ANSWERS = List.of("ready", "done", "unsupported", "failed");
  private static final int SHOWN_LINES = 20;

  private final String name;
  private final Path log;
  private final Process process;
  private final BufferedWriter orders;
  private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

  /**
   * Starts a process. Its standard error goes to the log.
   *
   * @param name for messages
   */
  public LineProcess(String name, ProcessBuilder builder, Path log) throws IOException {
    this.name = name;
    this.log = log;
    this.process = builder.redirectError(log.toFile()).start();
    this.orders =
        new BufferedWriter(
            new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
    Thread reader = new Thread(this::read, "weft-bench-" + name);
    reader.setDaemon(true);
    reader.start();
  }

  private void read() {
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      lines.lines().filter(LineProcess::isAnswer).forEach(answers::add);
    } catch (IOException | UncheckedIOException e) {
      answers.add(ENDED + " " + e);
    } finally {
      answers.add(ENDED);
    }
  }

  private static boolean isAnswer(String line) {
    return ANSWERS.stream().anyMatch(line::startsWith);
  }

  /** Sends an order; {@link #answer} waits for the answer. */
  public void order(String line) throws IOException {
    try {
      orders.write(line);
      orders.newLine();
      orders.flush();
    } catch (IOException e) {
      throw new IOException(name + " no longer reads orders: " + logTail(), e);
    }
  }

  /**
   * Waits for the next answer and returns its words: "done", "ready" or "unsupported" and values.
   *
   * @throws IOException if the process failed, ended or timed out; the message has the end of its
   *     log
   */
  public String[] answer() throws IOException, InterruptedException {
    String line = answers.poll(ANSWER_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
    if (line == null) {
      throw new IOException(
          name + " did not answer within " + ANSWER_TIMEOUT.toSeconds() + " s: " + logTail());
    }
    if (line.startsWith(ENDED) || line.startsWith("failed")) {
      throw new IOException(name + " " + line + ": " + logTail());
    }
    return line.split(" ", -1);
  }

  /** Kills the process, as {@code kill -9} does. */
  public void kill() throws InterruptedException {
    process.destroyForcibly();
    if (!process.waitFor(STOP_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)) {
      throw new IllegalStateException(name + " does not end");
    }
  }

  /** Suspends the process for good: it exists but does not run. */
  public void stop() throws IOException, InterruptedException {
    Process stop = new ProcessBuilder("kill", "-STOP", Long.toString(process.pid())).start();
    if (!stop.waitFor(STOP_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS) || stop.exitValue() != 0) {
      throw new IOException(name + " cannot be stopped");
    }
  }

  private String logTail() {
    try {
      List<String> lines = Files.readAllLines(log);
      return String.join(
          "\n", lines.subList(Math.max(0, lines.size() - SHOWN_LINES), lines.size()));
    } catch (IOException e) {
      return "its log " + log + " cannot be read: " + e;
    }
  }

  /** Closes its input, waits until it ends, and kills it after a timeout. */
  @Override
  public void close() {
    List<ProcessHandle> children = process.descendants().toList();
    try {
      orders.close();
      if (!process.waitFor(STOP_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)) {
        process.destroyForcibly();
      }
    } catch (IOException e) {
      process.destroyForcibly();
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
    children.forEach(ProcessHandle::destroyForcibly);
  }
}
