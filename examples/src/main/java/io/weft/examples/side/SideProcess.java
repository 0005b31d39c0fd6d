package io.weft.examples.side;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A running side. One thread at a time calls it; close may come from a shutdown hook meanwhile. */
public final class SideProcess implements AutoCloseable {
  private static final Duration START_DEADLINE = Duration.ofMinutes(3);
  private static final Duration TASK_DEADLINE = Duration.ofMinutes(15);
  private static final Duration STOP_DEADLINE = Duration.ofSeconds(20);
  private static final int FAILURE_LINES = 30;

  private final SideOptions options;
  private final Process process;
  private final SideLogs logs;
  private final ObjectOutputStream tasks;
  private final BlockingQueue<SideReply> replies = new LinkedBlockingQueue<>();
  private String applicationId;
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

  /** What it was started with. */
  public SideOptions options() {
    return options;
  }

  /** Waits until its Spark application runs, and returns the application's id. */
  public String awaitReady() throws SideException, InterruptedException {
    if (applicationId == null) {
      applicationId = (String) await("start", START_DEADLINE);
    }
    return applicationId;
  }

  /** Runs a task there and waits for the result. */
  @SuppressWarnings("unchecked")
  public <R extends Serializable> R call(SideTask<R> task)
      throws SideException, InterruptedException {
    awaitReady();
    send(task);
    return (R) await(task.getClass().getSimpleName(), TASK_DEADLINE);
  }

  /** The operating system's ids of this side's processes: its driver and executors. */
  public List<Long> processIds() {
    return Stream.concat(Stream.of(process.toHandle()), process.descendants())
        .map(ProcessHandle::pid)
        .toList();
  }

  private void send(Serializable message) throws SideException {
    try {
      tasks.writeObject(message);
      tasks.reset();
      tasks.flush();
    } catch (IOException e) {
      throw new SideException(ended("could not be sent a task"), e);
    }
  }

  private Object await(String what, Duration deadline) throws SideException, InterruptedException {
    SideReply reply = replies.poll(deadline.toMillis(), TimeUnit.MILLISECONDS);
    if (reply == null) {
      throw new SideException(
          ended("did not finish " + what + " in " + deadline.toSeconds() + " s"));
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
        replies.add((SideReply) in.readObject());
      }
    } catch (IOException | ClassNotFoundException e) {
      replies.add(new SideReply(null, "the process ended: " + e));
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

  /** Ends the application and waits until its driver and executors are gone; kills what stays. */
  @Override
  public void close() {
    closed = true;
    List<ProcessHandle> executors = process.descendants().toList();
    try {
      process.getOutputStream().close();
    } catch (IOException alreadyGone) {
      process.destroy();
    }
    long deadline = System.nanoTime() + STOP_DEADLINE.toNanos();
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
}
