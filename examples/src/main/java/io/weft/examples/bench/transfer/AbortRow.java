package io.weft.examples.bench.transfer;

import io.weft.collectives.UniqueId;
import io.weft.examples.side.LineProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * How long it takes until everybody who waits for a peer knows that it is gone: killed, or stopped
 * so that only the deadline tells. Every run has two processes of its own. One thread.
 */
final class AbortRow {
  /** Of the benchmark's transfers. */
  static final Duration DEADLINE = Duration.ofSeconds(3);

  private static final int WAITERS = 64;

  private final TransferBenchOptions options;
  private final Path work;
  private final Path memory;
  private final Duration deadline;

  AbortRow(TransferBenchOptions options, Path work, Path memory, Duration deadline) {
    this.options = options;
    this.work = work;
    this.memory = memory;
    this.deadline = deadline;
  }

  RowResult measure() throws IOException, InterruptedException {
    List<SideFigures> sides =
        new InTurn(0, options.runs())
            .measure(
                List.of(
                    new Contestant("killed, shared memory", () -> run(true, false)),
                    new Contestant("killed, tcp", () -> run(false, false)),
                    new Contestant("stopped, tcp", () -> run(false, true))));
    double worst = sides.stream().mapToDouble(side -> side.seconds().max()).max().orElseThrow();
    return new RowResult(
        Row.ABORT.id(),
        WAITERS
            + " transfers whose peer is gone, until the last of them has failed; deadline "
            + deadline.toSeconds()
            + " s",
        0,
        sides,
        Goal.atMost(
            "the slowest within the deadline and 1 s", worst, "s", deadline.toMillis() / 1e3 + 1));
  }

  private Cost run(boolean sameHost, boolean stopped) throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory(memory, "abort-");
    List<String> meetings = List.of(UniqueId.create().encode(), UniqueId.create().encode());
    try (LineProcess waiter = start(folder, sameHost, 0, meetings);
        LineProcess victim = start(folder, sameHost, 1, meetings)) {
      awaitBoth(waiter, victim);
      waiter.order("exchange");
      victim.order("exchange");
      awaitBoth(waiter, victim);
      waiter.order("wait " + WAITERS);
      String[] unused = waiter.answer();
      long start = System.nanoTime();
      if (stopped) {
        victim.stop();
      } else {
        victim.kill();
      }
      int failed = Integer.parseInt(waiter.answer()[1]);
      double seconds = (System.nanoTime() - start) / 1e9;
      victim.kill();
      if (failed != WAITERS) {
        throw new IOException(failed + " of " + WAITERS + " transfers have failed");
      }
      return new Cost(seconds, 0);
    }
  }

  private static void awaitBoth(LineProcess waiter, LineProcess victim)
      throws IOException, InterruptedException {
    String[] one = waiter.answer();
    String[] other = victim.answer();
    if (!one[0].equals(other[0])) {
      throw new IOException("one says " + one[0] + ", the other " + other[0]);
    }
  }

  private LineProcess start(Path folder, boolean sameHost, int executor, List<String> meetings)
      throws IOException {
    List<String> command = new ArrayList<>(PeerPair.java());
    command.add(WaiterMain.class.getName());
    command.add(folder.toString());
    command.add("host-" + (sameHost ? 0 : executor));
    command.add(Integer.toString(executor));
    command.add(Long.toString(deadline.toMillis()));
    command.addAll(meetings);
    String name = "waiter-" + executor;
    return new LineProcess(
        name, new ProcessBuilder(command), Files.createTempFile(work, name + "-", ".log"));
  }
}
