package io.weft.examples.side;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The handle of a running side. For one thread at a time; only close may run at the same time, from
 * a shutdown hook.
 */
public final class SideProcess implements AutoCloseable {
  private static final Duration START_TIMEOUT = Duration.ofMinutes(3);
  private static final Duration TASK_TIMEOUT = Duration.ofMinutes(15);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);
  private static final int FAILURE_LINES = 30;

  private final SideOptions options;
  private final Process process;
  private final SideLogs logs;
  private final ObjectOutputStream tasks;
  private final BlockingQueue<Reply> replies = new LinkedBlockingQueue<>();
  private String applicationId;
  private String unanswered;
  private volatile boolean closed;

  SideProcess(SideOptions options, Process process, SideLogs logs, Map<String, String> settings)
      throws IOException {
    this.options = options;
    this.process = process;
    this.logs = logs;
    this.tasks = new ObjectOutputStream(new BufferedOutputStream(process.getOutputStream()));
    Thread reader = new Thread(this::readReplies, "weft-side-" + options.name());
    reader.setDaemon(true);
    reader.start();
    send(new HashMap<>(settings));
  }

  /** Returns the options of this side. */
  public SideOptions options() {
    return options;
  }

  /** Whether the side was closed, perhaps by an interrupt of this command. */
  public boolean closed() {
    return closed;
  }

  /** Waits until the Spark application runs and returns its id. */
  public String awaitReady() throws SideException, InterruptedException {
    if (applicationId == null) {
      applicationId = (String) await("start", START_TIMEOUT);
    }
    return applicationId;
  }

  /**
   * Runs a task on the side and waits for the result.
   *
   * @throws SideException if the task fails, if the process ends, and from the first timeout on
   */
  @SuppressWarnings("unchecked")
  public <R extends Serializable> R call(SideTask<R> task)
      throws SideException, InterruptedException {
    awaitReady();
    send(task);
    return (R) await(task.getClass().getSimpleName(), TASK_TIMEOUT);
  }

  /** Returns the process ids of this side's driver and executors. */
  public List<Long> processIds() {
    return Stream.concat(Stream.of(process.toHandle()), process.descendants())
        .map(ProcessHandle::pid)
        .toList();
  }

  /** Returns the CPU time of all threads of this side's executors since they started. */
  public double executorCpuSeconds() {
    return process
        .descendants()
        .flatMap(executor -> executor.info().totalCpuDuration().stream())
        .mapToDouble(cpu -> cpu.toNanos() / 1e9)
        .sum();
  }

  private void send(Serializable message) throws SideException {
    if (unanswered != null) {
      throw new SideException(unanswered);
    }
    try {
      tasks.writeObject(message);
      tasks.reset();
      tasks.flush();
    } catch (IOException e) {
      throw new SideException(ended("could not be sent a task"), e);
    }
  }

  private Object await(String what, Duration deadline) throws SideException, InterruptedException {
    Reply reply = replies.poll(deadline.toMillis(), TimeUnit.MILLISECONDS);
    if (reply == null) {
      // A late reply must not be taken for that of the next task.
      unanswered = ended("did not finish " + what + " in " + deadline.toSeconds() + " s");
      throw new SideException(unanswered);
    }
    if (reply.failure() != null) {
      throw new SideException(
          closed ? "interrupted" : failed(what, reply.failure()) + "\n" + logs.tails());
    }
    return reply.value();
  }

  private void readReplies() {
    try (ObjectInputStream in =
        new ObjectInputStream(new BufferedInputStream(process.getInputStream()))) {
      while (true) {
        replies.add((Reply) in.readObject());
      }
    } catch (IOException | ClassNotFoundException e) {
      replies.add(new Reply(null, "the process ended: " + e));
    }
  }

  private String failed(String what, String trace) {
    return options.label()
        + " failed in "
        + what
        + ":\n"
        + trace.lines().limit(FAILURE_LINES).collect(Collectors.joining("\n"));
  }

  private String ended(String what) {
    return closed
        ? "interrupted"
        : "the process of " + options.label() + " " + what + "; " + logs.tails();
  }

  /** Ends the application and waits for its driver and executors. Kills them after a timeout. */
  @Override
  public void close() {
    closed = true;
    List<ProcessHandle> executors = process.descendants().toList();
    try {
      process.getOutputStream().close();
    } catch (IOException alreadyGone) {
      process.destroy();
    }
    long deadline = System.nanoTime() + STOP_TIMEOUT.toNanos();
    awaitEnd(process.toHandle(), deadline);
    executors.forEach(executor -> awaitEnd(executor, deadline));
  }

  private static void awaitEnd(ProcessHandle handle, long deadline) {
    try {
      handle.onExit().get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      handle.destroyForcibly();
      Thread.currentThread().interrupt();
    } catch (Exception late) {
      handle.destroyForcibly();
    }
  }

  /**
   * The logs of a side, for messages about its failure.
   *
   * @param driver the driver's log
   * @param executors the folder with a subfolder for each application and, in it, each executor
   */
  record SideLogs(Path driver, Path executors) {
    private static final int LINES = 30;
    private static final int DEPTH_OF_EXECUTORS = 3;
    private static final String EXECUTOR_LOG = "stderr";

    /** Returns the end of the driver's log and of the executor log that was written last. */
    String tails() {
      StringBuilder text = new StringBuilder("the end of the driver's log:\n").append(tail(driver));
      lastExecutor()
          .ifPresent(log -> text.append("\nthe end of an executor's log:\n").append(tail(log)));
      return text.toString();
    }

    private Optional<Path> lastExecutor() {
      if (!Files.isDirectory(executors)) {
        return Optional.empty();
      }
      try (Stream<Path> files = Files.walk(executors, DEPTH_OF_EXECUTORS)) {
        return files
            .filter(file -> file.endsWith(EXECUTOR_LOG))
            .max(Comparator.comparing(SideLogs::modified));
      } catch (IOException e) {
        return Optional.empty();
      }
    }

    private static FileTime modified(Path file) {
      try {
        return Files.getLastModifiedTime(file);
      } catch (IOException goneMeanwhile) {
        return FileTime.fromMillis(0);
      }
    }

    private static String tail(Path log) {
      try {
        // The command line of the executor is too long to be useful.
        List<String> lines =
            Files.readAllLines(log).stream()
                .filter(line -> !line.startsWith("Spark Executor Command"))
                .toList();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - LINES), lines.size()));
      } catch (IOException e) {
        return "(cannot read " + log + ": " + e + ")";
      }
    }
  }

  /**
   * The reply of a side to a task.
   *
   * @param value the result; null after a failure
   * @param failure the stack trace; null after success
   */
  record Reply(Serializable value, String failure) implements Serializable {}
}
