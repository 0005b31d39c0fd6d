package io.weft.examples.trace;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Deadline;
import io.weft.device.Device;
import io.weft.examples.trace.TransferPattern.Move;
import io.weft.examples.trace.TransferPattern.Span;
import io.weft.memory.SharedArena;
import io.weft.transfers.ArrayPlacement;
import io.weft.transfers.BufferShape;
import io.weft.transfers.DeferredTransfer;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.DeviceTransfers.TransferMembership;
import io.weft.transfers.SourceBuffer;
import io.weft.transfers.TransferOptions;
import io.weft.transfers.TransferWire.CommunicatorWire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * The transfers of a replay, in host memory. Executors of different hosts are connected over
 * loopback. Each executor starts its ends in the order of the trace. Before it starts one, it waits
 * for those of its ends that had ended by then in the trace. One thread for each executor.
 */
final class ReplayTransfers implements AutoCloseable {
  private final Map<String, DeviceTransfers> transfers = new LinkedHashMap<>();
  private final Map<String, List<Step>> steps = new LinkedHashMap<>();
  private final Map<String, String> hosts;
  private final Rendezvous rendezvous;
  private final TransferOptions options;
  private final ByteBuffer content;

  /** The times of the last run, by the number of the move. */
  private final Span[] sends;

  private final Span[] receives;

  /** One end of a move. */
  private record Step(int number, Move move, boolean sends, Span span, long key, long bytes) {}

  /** An end that has started, and the time of its end. */
  private record Started(
      Step step, long start, DeferredTransfer transfer, CompletableFuture<Long> end) {}

  /** Both ends of a clique open the same rendezvous, and a new one for each communicator. */
  private static final class Rendezvous {
    private final Path folder;
    private final Map<CliqueKey, List<UniqueId>> ids = new HashMap<>();
    private final Map<CliqueKey, int[]> opened = new HashMap<>();

    Rendezvous(Path folder) {
      this.folder = folder;
    }

    FileBootstrap open(CliqueKey key, int rank) throws IOException {
      return FileBootstrap.open(folder, next(key, rank), rank, key.size());
    }

    private synchronized UniqueId next(CliqueKey key, int rank) {
      List<UniqueId> known = ids.computeIfAbsent(key, unused -> new ArrayList<>());
      int number = opened.computeIfAbsent(key, unused -> new int[key.size()])[rank]++;
      while (known.size() <= number) {
        known.add(UniqueId.create());
      }
      return known.get(number);
    }
  }

  /** An executor with its devices, all in host memory. */
  private record Member(String executor, List<DeviceId> devices) implements TransferMembership {
    @Override
    public CliqueMember member(DeviceId device) {
      Device memory = new Device(Device.Kind.HOST, device.ordinal());
      return new CliqueMember(device.executor(), "replay", memory);
    }
  }

  /**
   * Opens the transfers.
   *
   * @param hosts by executor id
   * @param arenas of the executors, for what they receive; the caller closes them afterwards
   * @param memory a folder of shared memory
   * @param work a folder for files
   * @param scaled the bytes of the replay for bytes of the trace
   */
  ReplayTransfers(
      TransferPattern pattern,
      Map<String, String> hosts,
      Function<String, SharedArena> arenas,
      TransferOptions options,
      Path memory,
      Path work,
      Function<Long, Long> scaled)
      throws IOException {
    this.hosts = hosts;
    this.options = options;
    this.sends = new Span[pattern.moves().size()];
    this.receives = new Span[pattern.moves().size()];
    this.rendezvous = new Rendezvous(Files.createDirectories(work.resolve("rendezvous")));
    addSteps(pattern, scaled);
    long largest =
        steps.values().stream().flatMap(List::stream).mapToLong(Step::bytes).max().orElse(0);
    if (largest > Integer.MAX_VALUE) {
      throw new IOException(
          "a transfer has %d bytes, and a replay has at most 2 GiB: set --scale"
              .formatted(largest));
    }
    content = content((int) largest);
    try {
      for (String executor : steps.keySet()) {
        String host = hosts.get(executor);
        String name = "host-" + Integer.toHexString(host.hashCode());
        Path folder = Files.createDirectories(memory.resolve(name));
        transfers.put(executor, open(executor, host, folder, arenas.apply(executor)));
      }
    } catch (IOException | RuntimeException e) {
      close();
      throw e;
    }
  }

  /** What all transfers send. The limit of direct memory is by default that of the heap. */
  private static ByteBuffer content(int bytes) throws IOException {
    try {
      return ByteBuffer.allocateDirect(bytes);
    } catch (OutOfMemoryError e) {
      throw new IOException(
          ("no direct memory for the largest transfer, %d bytes: set --scale, or"
                  + " JAVA_TOOL_OPTIONS=-XX:MaxDirectMemorySize=4g")
              .formatted(bytes),
          e);
    }
  }

  private void addSteps(TransferPattern pattern, Function<Long, Long> scaled) {
    Map<String, Long> keys = new HashMap<>();
    for (int number = 0; number < pattern.moves().size(); number++) {
      Move move = pattern.moves().get(number);
      long key = keys.merge(move.source() + " to " + move.destination(), 1L, Long::sum);
      long bytes = scaled.apply(move.bytes());
      steps(move.source()).add(new Step(number, move, true, move.send(), key, bytes));
      steps(move.destination()).add(new Step(number, move, false, move.receive(), key, bytes));
    }
    steps.values().forEach(own -> own.sort(Comparator.comparingLong(step -> step.span().start())));
  }

  private List<Step> steps(DeviceId device) {
    return steps.computeIfAbsent(device.executor(), id -> new ArrayList<>());
  }

  private DeviceTransfers open(String executor, String host, Path folder, SharedArena arena) {
    List<DeviceId> devices =
        steps.get(executor).stream()
            .map(step -> step.sends() ? step.move().source() : step.move().destination())
            .distinct()
            .sorted()
            .toList();
    return new DeviceTransfers(
        new Member(executor, devices),
        new DeviceTransfers.Resources(
            new HostCommunicators(HostOptions.defaults().withFolder(folder).withHostIdentity(host)),
            rendezvous::open,
            CommunicatorWire::new,
            arena),
        options);
  }

  /** The work of each executor, to be run at the same time. */
  Stream<Runnable> work() {
    return transfers.keySet().stream().map(executor -> () -> replay(executor));
  }

  private void replay(String executor) {
    PriorityQueue<Started> underWay =
        new PriorityQueue<>(Comparator.comparingLong(started -> started.step().span().end()));
    try {
      for (Step step : steps.get(executor)) {
        while (!underWay.isEmpty() && underWay.peek().step().span().end() <= step.span().start()) {
          await(underWay.remove());
        }
        underWay.add(start(transfers.get(executor), step));
      }
      while (!underWay.isEmpty()) {
        await(underWay.remove());
      }
    } finally {
      underWay.forEach(started -> started.transfer().close());
    }
  }

  private Started start(DeviceTransfers of, Step step) {
    long start = System.nanoTime();
    DeferredTransfer transfer = of.place(List.of(placement(step))).get(0);
    CompletableFuture<Long> end = new CompletableFuture<>();
    transfer.event().whenDone(failure -> end.complete(System.nanoTime()));
    return new Started(step, start, transfer, end);
  }

  private ArrayPlacement placement(Step step) {
    Move move = step.move();
    BufferShape shape = BufferShape.of(DataType.INT8, step.bytes());
    if (!step.sends()) {
      return ArrayPlacement.of(move.source(), move.destination(), shape, step.key());
    }
    ByteBuffer bytes = content.duplicate().limit((int) step.bytes());
    SourceBuffer source =
        SourceBuffer.of(move.source(), TypedBuffer.wrap(bytes.slice(), DataType.INT8));
    return ArrayPlacement.of(source, move.destination(), shape, step.key());
  }

  private void await(Started started) {
    try (DeferredTransfer transfer = started.transfer()) {
      transfer.event().await(Deadline.after(options.deadline()));
      long limit = options.deadline().toMillis();
      long end = started.end().orTimeout(limit, TimeUnit.MILLISECONDS).join();
      Step step = started.step();
      (step.sends() ? sends : receives)[step.number()] = new Span(started.start(), end);
    }
  }

  /** The figures of the last run, after its work has ended. */
  TransferTotals totals() {
    List<Move> moves = new ArrayList<>();
    for (List<Step> own : steps.values()) {
      for (Step step : own) {
        if (step.sends()) {
          int number = step.number();
          Move move = step.move();
          moves.add(
              new Move(
                  move.source(),
                  move.destination(),
                  step.bytes(),
                  sends[number],
                  receives[number]));
        }
      }
    }
    return new TransferPattern(moves, 0).totals(hosts);
  }

  @Override
  public void close() {
    transfers.values().forEach(DeviceTransfers::close);
  }
}
