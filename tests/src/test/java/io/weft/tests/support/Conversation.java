package io.weft.tests.support;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A test's dialogue with an {@link InteractiveApplication} that it has started. Closing kills the
 * application if it still runs.
 */
public final class Conversation implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  private final ChildProcess process;
  private final Path results;
  private int orders;

  private Conversation(ChildProcess process, Path results) {
    this.process = process;
    this.results = results;
  }

  /** Starts the application and waits until its session is ready. */
  public static Conversation open(Workspace workspace, Submission submission) {
    Conversation talk = begin(workspace, submission);
    talk.process.awaitStage("ready", LIMIT);
    return talk;
  }

  /** Starts the application and does not wait. */
  public static Conversation begin(Workspace workspace, Submission submission) {
    try {
      Path results = Files.createTempDirectory(workspace.folder(), "results-");
      submission.argument(Answers.tables()).argument(results);
      return new Conversation(submission.start(), results);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The process of the driver. */
  public ChildProcess process() {
    return process;
  }

  /** Sends an order and waits until it is done; returns its output. A failed order is an error. */
  public String order(String order) {
    return await(send(order));
  }

  /** Sends an order; returns the number to wait for it. */
  public int send(String order) {
    orders++;
    process.send(orders + " " + order);
    return orders;
  }

  /** Waits until an earlier order is done. */
  public String await(int number) {
    Matcher answer = answer(number);
    if (answer.group(1).equals("failed")) {
      throw new AssertionError(
          process.describe("failed at order " + number + ": " + answer.group(2)));
    }
    return answer.group(2);
  }

  /** Sends an order that must fail; returns its output. */
  public String orderThatFails(String order) {
    Matcher answer = answer(send(order));
    if (!answer.group(1).equals("failed")) {
      throw new AssertionError(process.describe("did not fail at " + order));
    }
    return answer.group(2);
  }

  private Matcher answer(int number) {
    return process.awaitLine("(done|failed) " + number + ": (.*)", LIMIT);
  }

  /** Runs the compact queries and compares their rows with those of Spark's shuffle. */
  public void checkCompact() {
    order("compact");
    compareCompact();
  }

  /** Like {@link #checkCompact}, with two queries only. */
  public void checkSmoke() {
    Queries.smoke().forEach(this::check);
  }

  /** Compares the rows of the compact queries, which have run, with those of Spark's shuffle. */
  public void compareCompact() {
    Queries.compact().forEach(this::compare);
  }

  /** Runs one query and compares its rows. */
  public void check(Query query) {
    order("answer " + query.name());
    compare(query);
  }

  private void compare(Query query) {
    for (String kind : List.of("adaptive", "static")) {
      Rows.assertSame(
          query.name() + ", " + kind, Answers.of(query), read(query.name() + "." + kind));
    }
  }

  private List<String> read(String file) {
    try {
      return Files.readAllLines(results.resolve(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** One of Weft's metrics, summed over the executors. */
  public long sum(String figure) {
    Matcher values = Pattern.compile("\\b" + figure + "=(\\d+)").matcher(order("statistics"));
    return values.results().mapToLong(match -> Long.parseLong(match.group(1))).sum();
  }

  /** Ends the application normally. */
  public void quit() {
    send("quit");
    process.awaitSuccess(LIMIT);
  }

  @Override
  public void close() {
    process.close();
  }
}
