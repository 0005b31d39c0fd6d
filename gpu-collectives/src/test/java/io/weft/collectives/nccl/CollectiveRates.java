package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.SettingNames;
import io.weft.testgpus.Goal;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Times of collectives between GPUs: single ones in and outside of windows, and a step of 50 small
 * ones, run one by one and replayed as a graph. Ranks are threads: two on two GPUs, or on one where
 * NCCL lets them, else one. Prints a table and writes it as JSON. Run by {@code tests/gpu/run};
 * never a test.
 */
final class CollectiveRates implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);
  private static final int RUNS = TestMachine.hasSpeed() ? 20 : 3;
  private static final ReduceOp SUM = ReduceOp.SUM;
  private static final int STEPS = 50;
  private static final long STEP_BYTES = 4 << 10;
  private static final long[] SIZES = {
    1 << 10, 64 << 10, 1 << 20, TestMachine.hasSpeed() ? 64 << 20 : 2 << 20
  };

  /** The graph must pay for the agreement of the ranks before each replay. */
  private static final double GOAL_OF_A_GRAPH = 2;

  private final RankGang gang;
  private final Map<Integer, DeviceArena> arenas = new ConcurrentHashMap<>();

  private CollectiveRates(int nranks, Path folder) {
    CommunicatorFactory hosts = new HostCommunicators(HostOptions.defaults().withFolder(folder));
    gang =
        RankGang.open(
            (bootstrap, options) -> {
              NcclOptions own =
                  NcclOptions.on(GpuDoubles.device(bootstrap.rank()))
                      .withLinger(Duration.ofMillis(500))
                      .withArena(arenas.computeIfAbsent(bootstrap.rank(), CollectiveRates::arena));
              return new NcclCommunicators(TestMachine.options(), own, hosts)
                  .create(bootstrap, options);
            },
            nranks,
            TIMEOUT);
  }

  private static DeviceArena arena(int rank) {
    return DeviceArena.open(
        GpuDoubles.device(rank), TestMachine.options(), 512 << 20, SettingNames.OWN);
  }

  /**
   * Runs the measurement.
   *
   * @param args the JSON file to write
   */
  public static void main(String[] args) throws IOException {
    int nranks;
    try {
      boolean shares =
          NcclLibrary.load(TestMachine.options()).sharesGpus(TestMachine.options().environment());
      nranks = TestMachine.count() > 1 || shares ? 2 : 1;
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU with NCCL can be used: " + e.getMessage());
      return;
    }
    try (CollectiveRates rates =
        new CollectiveRates(nranks, Files.createTempDirectory("weft-collectives"))) {
      List<String> single = new ArrayList<>();
      for (long bytes : SIZES) {
        single.add(rates.single(bytes));
      }
      String json =
          "{\"ranks\": %d, \"gpus\": %d, \"allReduce\": [\n  %s],\n \"step\": %s}%n"
              .formatted(nranks, TestMachine.count(), String.join(",\n  ", single), rates.step());
      Files.writeString(Path.of(args[0]), json);
    }
  }

  /** An all-reduce in a window and in memory that NCCL does not know. */
  private String single(long bytes) {
    List<double[]> seconds =
        gang.ask(
            communicator -> {
              int rank = communicator.rank();
              try (GpuBuffer window = floats(communicator, bytes);
                  CudaMemoryPool pool =
                      CudaMemoryPool.open(
                          GpuDoubles.device(rank), CudaMemoryPool.Kind.DEVICE, 2 * bytes);
                  CudaMemory memory = pool.take(bytes)) {
                TypedBuffer plain =
                    TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.FLOAT32, bytes / 4);
                return new double[] {
                  median(() -> communicator.allReduce(window.elements(), SUM)),
                  median(() -> communicator.allReduce(plain, SUM))
                };
              }
            });
    double inWindow = seconds.get(0)[0];
    double outside = seconds.get(0)[1];
    System.out.printf(
        Locale.ROOT,
        "all-reduce of %,d bytes: %.1f us in a window (%.1f GB/s), %.1f us outside%n",
        bytes,
        inWindow * 1e6,
        bytes / inWindow / 1e9,
        outside * 1e6);
    return String.format(
        Locale.ROOT,
        "{\"bytes\": %d, \"windowMicros\": %.2f, \"outsideMicros\": %.2f}",
        bytes,
        inWindow * 1e6,
        outside * 1e6);
  }

  private String step() {
    List<double[]> seconds =
        gang.ask(
            communicator -> {
              List<GpuBuffer> buffers = new ArrayList<>();
              for (int i = 0; i < STEPS; i++) {
                buffers.add(floats(communicator, STEP_BYTES));
              }
              Runnable one =
                  () -> buffers.forEach(each -> communicator.allReduce(each.elements(), SUM));
              try (Recording recording =
                  communicator.record(
                      to -> buffers.forEach(each -> to.allReduce(each.elements(), SUM)))) {
                recording.whyNoGraph().ifPresent(why -> System.out.println("no graph: " + why));
                return new double[] {median(one), median(recording::replay)};
              } finally {
                buffers.forEach(GpuBuffer::close);
              }
            });
    double single = seconds.get(0)[0];
    double replayed = seconds.get(0)[1];
    System.out.printf(
        Locale.ROOT,
        "a step of %d all-reduces of %d bytes: %.1f us one by one, %.1f us replayed%n",
        STEPS,
        STEP_BYTES,
        single * 1e6,
        replayed * 1e6);
    Goal goal =
        Goal.least(
            "a recorded step, times as fast as its operations one by one",
            single / replayed,
            GOAL_OF_A_GRAPH,
            "x");
    System.out.println(goal.line());
    return String.format(
        Locale.ROOT,
        "{\"operations\": %d, \"bytes\": %d, \"singleMicros\": %.2f, \"replayMicros\": %.2f,"
            + " \"goals\": [%s]}",
        STEPS,
        STEP_BYTES,
        single * 1e6,
        replayed * 1e6,
        goal.json());
  }

  private static GpuBuffer floats(Communicator communicator, long bytes) {
    return ((GpuCommunicator) communicator).onDevice(DataType.FLOAT32, bytes / 4);
  }

  /** The median time of some runs, after one that does not count. */
  private static double median(Runnable run) {
    double[] seconds = new double[RUNS];
    run.run();
    for (int i = 0; i < RUNS; i++) {
      long start = System.nanoTime();
      run.run();
      seconds[i] = (System.nanoTime() - start) / 1e9;
    }
    Arrays.sort(seconds);
    return seconds[RUNS / 2];
  }

  @Override
  public void close() {
    gang.close();
    arenas.values().forEach(DeviceArena::close);
    GpuDoubles.closeDevices();
  }
}
