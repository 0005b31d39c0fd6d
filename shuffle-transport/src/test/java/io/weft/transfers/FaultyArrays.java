package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.DataType;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.tensor.codec.CodecKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * A round of arrays between two or three executors on separate hosts, over a faulty network. Used
 * by one thread.
 */
final class FaultyArrays {
  private static final Duration DEADLINE = Duration.ofMillis(500);

  /** Long enough for a slow machine: without faults nothing may fail, and nothing may hang. */
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private static final int[] LENGTHS = {1, 3, 100, 4000, 20_000, 70_001, 300_000};
  private static final DataType[] TYPES = {DataType.INT8, DataType.INT32, DataType.FLOAT64};

  private final Path folder;
  private final SplittableRandom random;
  private final double faultRate;
  private final int nodes;

  /** The result of a round. */
  record Outcome(int arrived, int failed, int faults, FaultyRetries.Attempts attempts) {}

  /** One array and its two ends. */
  private record Sent(int from, int to, BufferShape shape, long key, List<DeferredTransfer> ends) {}

  private FaultyArrays(Path folder, long seed) {
    this.folder = folder;
    this.random = new SplittableRandom(seed);
    this.faultRate = random.nextInt(4) == 0 ? 0 : random.nextDouble() * random.nextDouble() * 0.05;
    this.nodes = 2 + random.nextInt(2);
  }

  /** Sends some arrays. Fails the test if a result is not allowed. */
  static Outcome round(Path folder, long seed) throws InterruptedException {
    return new FaultyArrays(folder, seed).run();
  }

  private Outcome run() throws InterruptedException {
    TransferOptions options =
        TransferOptions.DEFAULT
            .withDeadline(faultRate == 0 ? TIMEOUT : DEADLINE)
            .withBatchBytes(1 + random.nextInt(200_000))
            .withIdle(Duration.ofMillis(50L << random.nextInt(8)));
    Executors executors = new Executors(folder, FaultyArrays::communicators, options);
    try (FaultyArrayNetwork network =
            new FaultyArrayNetwork(executors.rendezvous(), random.nextLong(), faultRate);
        executors) {
      executors.network(network).start(nodes);
      List<Sent> sent = send(executors);
      int arrived = (int) sent.stream().filter(this::check).count();
      int faults = network.faults();
      FaultyRetries retries = new FaultyRetries(executors, random, nodes, faultRate > 0, TIMEOUT);
      Outcome outcome = new Outcome(arrived, sent.size() - arrived, faults, retries.run());
      network.heal();
      for (int from = 0; from < nodes; from++) {
        for (int to = 0; to < nodes; to++) {
          if (from != to) {
            worksAgain(executors, from, to);
          }
        }
      }
      assertThat(network.connections()).as("connections over the network").isPositive();
      nothingIsLeft(executors);
      return outcome;
    }
  }

  private static HostCommunicators communicators(Path folder, String executor) {
    return new HostCommunicators(
        HostOptions.defaults()
            .withFolder(folder.resolve("host-" + executor))
            .withHostIdentity("host-" + executor));
  }

  private List<Sent> send(Executors executors) {
    List<Sent> all = new ArrayList<>();
    int batches = 1 + random.nextInt(4);
    for (int batch = 0; batch < batches; batch++) {
      List<Sent> arrays = place(executors, 100L * batch);
      all.addAll(arrays);
      if (random.nextBoolean()) {
        arrays.forEach(array -> array.ends().forEach(end -> ended(end.event())));
      }
    }
    return all;
  }

  /** All executors place the same arrays. */
  private List<Sent> place(Executors executors, long firstKey) {
    List<Sent> arrays = new ArrayList<>();
    int count = 1 + random.nextInt(6);
    for (int i = 0; i < count; i++) {
      int from = random.nextInt(nodes);
      int to = (from + 1 + random.nextInt(nodes - 1)) % nodes;
      BufferShape shape =
          BufferShape.of(
              TYPES[random.nextInt(TYPES.length)], LENGTHS[random.nextInt(LENGTHS.length)]);
      arrays.add(new Sent(from, to, shape, firstKey + i, new ArrayList<>()));
    }
    CodecKind codec = random.nextInt(3) == 0 ? CodecKind.ZSTD : CodecKind.NONE;
    for (int executor = 0; executor < nodes; executor++) {
      int here = executor;
      List<ArrayPlacement> placements =
          arrays.stream().map(array -> placement(here, array)).toList();
      List<DeferredTransfer> transfers = executors.get(executor).place(placements, codec);
      for (int i = 0; i < count; i++) {
        arrays.get(i).ends().add(transfers.get(i));
      }
    }
    return arrays;
  }

  private static ArrayPlacement placement(int executor, Sent array) {
    return executor == array.from()
        ? TransferFixture.placement(
            Content.of(array.shape(), array.key()),
            array.from(),
            array.to(),
            array.shape(),
            array.key())
        : ArrayPlacement.of(device(array.from()), device(array.to()), array.shape(), array.key());
  }

  /** Waits for the end, which must come. Returns whether the transfer succeeded. */
  private static boolean ended(Event event) {
    try {
      event.await(Deadline.after(TIMEOUT));
      return true;
    } catch (EventFailedException e) {
      return false;
    }
  }

  /** Whether the array arrived, whole and correct. A failure must name both ends. */
  private boolean check(Sent array) {
    for (DeferredTransfer end : array.ends()) {
      boolean well = ended(end.event());
      assertThat(well || faultRate > 0).as("without faults: %s", end.event()).isTrue();
      if (!well) {
        assertThat(end.event().failure().orElseThrow())
            .hasMessageContaining("executor " + array.from() + "/device 0")
            .hasMessageContaining("executor " + array.to() + "/device 0");
      }
    }
    DeferredTransfer receiver = array.ends().get(array.to());
    boolean arrived = ended(receiver.event());
    if (arrived) {
      Content.check(receiver.received().orElseThrow().buffer(), array.key());
    }
    array.ends().forEach(DeferredTransfer::close);
    return arrived;
  }

  /** Retries, because each end may have to notice the broken connection first. */
  private void worksAgain(Executors executors, int from, int to) {
    BufferShape shape = BufferShape.of(DataType.INT32, 1000);
    long end = System.nanoTime() + TIMEOUT.toNanos();
    boolean arrived = false;
    for (long key = 10_000; !arrived; key++) {
      assertThat(System.nanoTime() - end).as("from %d to %d again", from, to).isNegative();
      Sent array = new Sent(from, to, shape, key, new ArrayList<>());
      for (int executor = 0; executor < nodes; executor++) {
        array.ends().addAll(executors.get(executor).place(List.of(placement(executor, array))));
      }
      arrived = check(array);
    }
  }

  private void nothingIsLeft(Executors executors) {
    for (int executor = 0; executor < nodes; executor++) {
      int each = executor;
      await("no buffer is out")
          .atMost(TIMEOUT)
          .pollInterval(1, TimeUnit.MILLISECONDS)
          .untilAsserted(
              () -> assertThat(executors.get(each).statistics().buffers().out()).isZero());
      executors.get(executor).close();
      assertThat(executors.arena(executor).statistics().usedBytes()).as("bytes used").isZero();
      assertThat(executors.get(executor).statistics().cliques().open()).as("cliques").isZero();
    }
  }
}
