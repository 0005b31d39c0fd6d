package io.weft.transfers;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Device;
import io.weft.device.HostEvent;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.transfers.PreparedTransfer.TransferEndpoints;
import io.weft.transfers.TransferLauncher.TransferBatch;
import io.weft.transfers.TransferWire.CommunicatorWire;
import io.weft.transfers.gpu.TransferGpu;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.awaitility.Awaitility;

/** The child's side of a {@link TransferProcess}. */
final class TransferChild {
  private static final long MIB = 1 << 20;
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final int executor;
  private final DeviceTransfers transfers;
  private final Optional<TransferGpu> gpu;
  private final GpuArrays arrays = new GpuArrays();

  private TransferChild(String[] args) throws IOException {
    Path folder = Path.of(args[0]);
    this.executor = Integer.parseInt(args[2]);
    Iterator<String> bootstrapIds = List.of(args).subList(4, args.length).iterator();
    Path home = Files.createDirectories(folder.resolve("arena-" + executor));
    CommunicatorFactory hosts =
        new HostCommunicators(
            HostOptions.defaults().withFolder(folder.resolve(args[1])).withHostIdentity(args[1]));
    boolean onGpus = TestGpus.isForThisProcess();
    this.gpu =
        onGpus
            ? Optional.of(Executors.gpu(executor, "first", GpuPath.NCCL, hosts))
            : Optional.empty();
    this.transfers =
        new DeviceTransfers(
            new TestMembership(
                args[2],
                List.of(Executors.device(executor)),
                Map.of("0", "first", "1", "first"),
                onGpus ? Device.Kind.CUDA : Device.Kind.HOST),
            new DeviceTransfers.Resources(
                hosts,
                (key, rank) ->
                    FileBootstrap.open(
                        folder, UniqueId.decode(bootstrapIds.next()), rank, key.size()),
                CommunicatorWire::new,
                SharedArena.open(new ArenaOptions(home, List.of(), 4 * MIB, 64 * MIB, 0, 0)),
                gpu.map(each -> each.resources(hosts))),
            TransferOptions.DEFAULT
                .withDeadline(Duration.ofMillis(Long.parseLong(args[3])))
                .withBatchAge(Duration.ofDays(1)));
  }

  public static void main(String[] args) throws IOException {
    TransferChild child = new TransferChild(args);
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      child.obey(line);
    }
    System.exit(0);
  }

  private static void print(String text) {
    System.out.println("= " + text.replace('\n', ' '));
  }

  private void obey(String order) {
    try {
      switch (order) {
        case "exchange" -> print(exchange());
        case "receive" -> print(failure(receive()));
        case "wait" -> awaitFailure();
        case "cliques" -> print(cliques());
        case "close" -> print(close());
        default -> throw new IllegalArgumentException(order);
      }
    } catch (AssertionError | RuntimeException e) {
      print("wrong: " + e);
    }
  }

  /** Exchanges arrays of several shapes and types, in both directions, in ten batches. */
  private String exchange() {
    int throughHost = 0;
    long copied = 0;
    long came = 0;
    for (int round = 0; round < 10; round++) {
      List<ArrayPlacement> placements = new ArrayList<>();
      Random random = new Random(round);
      for (int key = 0; key < 20; key++) {
        int from = random.nextInt(2);
        DataType type = DataType.values()[random.nextInt(DataType.values().length)];
        BufferShape shape = BufferShape.of(type, 1 + random.nextInt(20_000));
        placements.add(placement(from, shape, key));
      }
      int unused = TestGpus.hostCopies();
      long before = TestGpus.deviceBytesCopied();
      List<DeferredTransfer> placed = transfers.place(placements);
      for (int key = 0; key < placed.size(); key++) {
        long seed = key;
        Content.await(placed.get(key).event());
        placed
            .get(key)
            .received()
            .ifPresent(received -> Content.check(onHost(received.buffer()), seed));
        came += placed.get(key).received().map(each -> each.buffer().bytes()).orElse(0L);
        placed.get(key).close();
      }
      throughHost += round == 0 ? 0 : TestGpus.hostCopies();
      copied += TestGpus.deviceBytesCopied();
    }
    TransferStatistics statistics = transfers.statistics();
    return "right, with %d communicator, %d groups, %d copies through the host, %d of NCCL, %d manifests, %d bytes copied for %d"
        .formatted(
            statistics.cliques().created(),
            statistics.get(TransferCounter.GROUPS),
            throughHost,
            TestGpus.ncclLaunches(),
            statistics.get(TransferCounter.MANIFESTS),
            copied,
            came);
  }

  /** Receives an array that the other executor never sends. */
  private ReceivedBuffer receive() {
    return transfers
        .receive(
            Executors.device(executor),
            List.of(BufferShape.of(DataType.INT8, 1000)),
            List.of(Executors.device(1 - executor)),
            new long[] {99})
        .get(0);
  }

  private static String failure(ReceivedBuffer received) {
    try (received) {
      return Content.failure(received.event()).getMessage();
    }
  }

  private ArrayPlacement placement(int from, BufferShape shape, int key) {
    if (executor != from) {
      return ArrayPlacement.of(Executors.device(from), Executors.device(1 - from), shape, key);
    }
    TypedBuffer host = Content.of(shape, key);
    TypedBuffer data = TestGpus.isForThisProcess() ? arrays.copy(executor, host) : host;
    return TransferFixture.placement(data, from, 1 - from, shape, key);
  }

  private TypedBuffer onHost(TypedBuffer buffer) {
    return TestGpus.isForThisProcess() ? arrays.toHost(buffer) : buffer;
  }

  /** Waits for an array that never comes, and returns the failure. */
  private void awaitFailure() {
    long manifests = transfers.statistics().get(TransferCounter.MANIFESTS);
    ReceivedBuffer received = receive();
    Awaitility.await()
        .atMost(TIMEOUT)
        .until(() -> transfers.statistics().get(TransferCounter.MANIFESTS) > manifests);
    print("waits");
    print(failure(received));
  }

  /** For doubles: throws an error that names leaks. */
  private String close() {
    transfers.close();
    gpu.ifPresent(TransferGpu::close);
    arrays.close();
    TestGpus.assertClean();
    return "nothing is left behind";
  }

  /** The order of the cliques of a batch. Hash codes differ between processes. */
  private static String cliques() {
    TransferBatch batch = new TransferBatch();
    Random random = new Random(1);
    for (int i = 0; i < 60; i++) {
      CliqueKey clique =
          new CliqueKey(
              List.of(
                  new CliqueMember("0", "first", Device.HOST),
                  new CliqueMember("peer-" + random.nextInt(25), "first", Device.HOST)),
              "transfers");
      batch.add(
          new PreparedTransfer(
              clique,
              new TransferEndpoints(Executors.device(0), Executors.device(1), true),
              i,
              TransferAttempt.NONE,
              Content.ints(1, i),
              TransferEncoding.PLAIN,
              HostEvent.completed("its source")));
    }
    return batch.byClique().keySet().toString();
  }
}
