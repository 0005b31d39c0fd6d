package io.weft.examples.bench.transfer;

import io.weft.collectives.UniqueId;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.LineProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Measures the time until all transfers from a lost peer have failed. The peer is killed, or
 * suspended so that only the deadline reveals it. Every run starts two processes. For one thread.
 */
final class AbortRow {
  /** The deadline of the benchmark's transfers. */
  static final Duration DEADLINE = Duration.ofSeconds(3);

  private static final int WAITERS = 64;

  private final TransferBench.Options options;
  private final Path work;
  private final Path memory;
  private final Duration deadline;

  AbortRow(TransferBench.Options options, Path work, Path memory, Duration deadline) {
    this.options = options;
    this.work = work;
    this.memory = memory;
    this.deadline = deadline;
  }

  TransferReport.RowResult measure() throws IOException, InterruptedException {
    List<Rounds.SideFigures> sides =
        new Rounds(0, options.runs())
            .measure(
                List.of(
                    new Rounds.Contestant("killed, shared memory", () -> run(true, false)),
                    new Rounds.Contestant("killed, tcp", () -> run(false, false)),
                    new Rounds.Contestant("stopped, tcp", () -> run(false, true))));
    double worst = sides.stream().mapToDouble(side -> side.seconds().max()).max().orElseThrow();
    return new TransferReport.RowResult(
        Row.ABORT.id(),
        WAITERS
            + " transfers whose peer is lost, until the last one has failed; deadline "
            + deadline.toSeconds()
            + " s",
        0,
        sides,
        TransferReport.Goal.atMost(
            "the slowest within the deadline plus 1 s", worst, "s", deadline.toMillis() / 1e3 + 1));
  }

  private Rounds.Cost run(boolean sameHost, boolean stopped)
      throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory(memory, "abort-");
    List<String> rendezvous = List.of(UniqueId.create().encode(), UniqueId.create().encode());
    try (LineProcess waiter = start(folder, sameHost, 0, rendezvous);
        LineProcess victim = start(folder, sameHost, 1, rendezvous)) {
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
      return new Rounds.Cost(seconds, 0);
    }
  }

  private static void awaitBoth(LineProcess waiter, LineProcess victim)
      throws IOException, InterruptedException {
    String[] one = waiter.answer();
    String[] other = victim.answer();
    if (!one[0].equals(other[0])) {
      throw new IOException("one process answered " + one[0] + ", the other " + other[0]);
    }
  }

  private LineProcess start(Path folder, boolean sameHost, int executor, List<String> rendezvous)
      throws IOException {
    List<String> command = new ArrayList<>(PeerPair.java());
    command.add(WaiterMain.class.getName());
    command.add(folder.toString());
    command.add("host-" + (sameHost ? 0 : executor));
    command.add(Integer.toString(executor));
    command.add(Long.toString(deadline.toMillis()));
    command.addAll(rendezvous);
    String name = "waiter-" + executor;
    return new LineProcess(
        name, new ProcessBuilder(command), Files.createTempFile(work, name + "-", ".log"));
  }
}
