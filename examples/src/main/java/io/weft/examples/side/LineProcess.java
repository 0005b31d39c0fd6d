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

/** A child process that gets orders and gives answers, a line each. One thread at a time. */
public final class LineProcess implements AutoCloseable {
  private static final Duration ANSWER = Duration.ofMinutes(2);
  private static final Duration STOP = Duration.ofSeconds(30);
  private static final String ENDED = "ended";
  private static final List<String> ANSWERS = List.of("ready", "done", "unsupported", "failed");
  private static final int SHOWN_LINES = 20;

  private final String name;
  private final Path log;
  private final Process process;
  private final BufferedWriter orders;
  private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

  /**
   * Starts a process; its errors go to the log.
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

  /** Gives an order; the answer is waited for with {@link #answer}. */
  public void order(String line) throws IOException {
    try {
      orders.write(line);
      orders.newLine();
      orders.flush();
    } catch (IOException e) {
      throw new IOException(name + " takes no orders any more: " + logTail(), e);
    }
  }

  /**
   * The next answer, as words: "done", "ready" or "unsupported" and what follows.
   *
   * @throws IOException when it failed, ended or is late, with the end of its log
   */
  public String[] answer() throws IOException, InterruptedException {
    String line = answers.poll(ANSWER.toMillis(), TimeUnit.MILLISECONDS);
    if (line == null) {
      throw new IOException(
          name + " gave no answer within " + ANSWER.toSeconds() + " s: " + logTail());
    }
    if (line.startsWith(ENDED) || line.startsWith("failed")) {
      throw new IOException(name + " " + line + ": " + logTail());
    }
    return line.split(" ", -1);
  }

  /** Ends it at once, as {@code kill -9} does. */
  public void kill() throws InterruptedException {
    process.destroyForcibly();
    if (!process.waitFor(STOP.toMillis(), TimeUnit.MILLISECONDS)) {
      throw new IllegalStateException(name + " does not end");
    }
  }

  /** Stops it, so that it is there and does nothing; it cannot go on again. */
  public void stop() throws IOException, InterruptedException {
    Process stop = new ProcessBuilder("kill", "-STOP", Long.toString(process.pid())).start();
    if (!stop.waitFor(STOP.toMillis(), TimeUnit.MILLISECONDS) || stop.exitValue() != 0) {
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

  /** Ends its input, waits for its end, and kills it if that takes too long. */
  @Override
  public void close() {
    List<ProcessHandle> children = process.descendants().toList();
    try {
      orders.close();
      if (!process.waitFor(STOP.toMillis(), TimeUnit.MILLISECONDS)) {
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
