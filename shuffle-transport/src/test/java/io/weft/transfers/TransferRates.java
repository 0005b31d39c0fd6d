package io.weft.transfers;

import static io.weft.transfers.Executors.device;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Event;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.testgpus.Goal;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;

/**
 * The rate of arrays between the GPUs of two executors in this process, on two GPUs if there are
 * two, by each path that they can use. Measures one large array, compared with a plain copy, and
 * many small ones, in batches and one by one. Prints a table and writes it as JSON. Run by {@code
 * tests/gpu/run}; never a test.
 */
final class TransferRates implements AutoCloseable {
  private static final int RUNS = 5;
  private static final long LARGE = TestGpus.haveSpeed() ? 64L << 20 : 1L << 20;

  /** Plain copies between two looks at the clock, so that the wait for their end counts little. */
  private static final int COPIES = 16;

  /** In GB/s, for paths that stay on GPUs: above what PCIe 5.0 can bring through the host. */
  private static final double GOAL = 40;

  /**
   * In GB/s, for CUDA IPC on one GPU. By calculation for an H100, the copy of 64 MiB takes 0.05 ms,
   * and the messages between the hosts before and after it at most 0.5 ms.
   */
  private static final double GOAL_OF_ONE_COPY = 100;

  private static final long SMALL = 64L << 10;
  private static final int COUNT = TestGpus.haveSpeed() ? 2000 : 200;
  private static final int BATCH = TestGpus.haveSpeed() ? 1000 : 100;

  private final GpuArrays arrays = new GpuArrays();
  private final Executors executors;
  private final GpuPath path;
  private long nextKey = 1;

  /** The time of a number of transfers. */
  private record Took(double seconds, double[] callSeconds) {}

  private TransferRates(Path folder, GpuPath path) {
    this.path = path;
    this.executors =
        new Executors(
            folder,
            (home, executor) ->
                new HostCommunicators(HostOptions.defaults().withFolder(home.resolve("shared"))),
            TransferOptions.DEFAULT);
    executors.gpus(path).start(2);
  }

  /**
   * Runs the measurement.
   *
   * @param args the JSON file to write
   */
  public static void main(String[] args) throws IOException {
    List<String> measured = new ArrayList<>();
    try {
      TestGpus.cuda();
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU can be used: " + e.getMessage());
      return;
    }
    for (GpuPath path : GpuPath.values()) {
      String whyNot = path.whyNot();
      if (!whyNot.isEmpty()) {
        System.out.println(path + " is not measured: " + whyNot);
        continue;
      }
      System.out.println(path + ":");
      try (TransferRates rates = new TransferRates(folder(path), path)) {
        measured.add(
            "{\"path\": \"%s\", \"large\": %s,\n   \"small\": %s}"
                .formatted(path, rates.large(), rates.small()));
      }
    }
    Files.writeString(
        Path.of(args[0]),
        "{\"gpus\": %d, \"paths\": [\n  %s]}%n"
            .formatted(TestGpus.count(), String.join(",\n  ", measured)));
  }

  private static Path folder(GpuPath path) throws IOException {
    return Files.createTempDirectory("weft-rates-" + path);
  }

  /** Alternates with plain copies between the same memory. */
  private String large() {
    List<SourceBuffer> sources = sources(1, LARGE);
    TypedBuffer there = arrays.like(1, sources.get(0).buffer());
    move(sources);
    double[] copies = new double[RUNS];
    double[] moves = new double[RUNS];
    for (int run = 0; run < RUNS; run++) {
      copies[run] = copy(sources.get(0).buffer(), there);
      moves[run] = move(sources).seconds();
    }
    double copy = median(copies);
    double move = median(moves);
    System.out.printf(
        Locale.ROOT,
        "transfer %,12d bytes: %9.3f ms, a plain copy %9.3f ms (%.1f GB/s): %.0f %% of its rate%n",
        LARGE,
        move * 1e3,
        copy * 1e3,
        LARGE / copy / 1e9,
        100 * copy / move);
    double rate = LARGE / move / 1e9;
    List<Goal> goals =
        path == GpuPath.STAGED
            ? List.of()
            : List.of(Goal.least("a transfer of 64 MiB by " + path, rate, goal(), "GB/s"));
    goals.forEach(goal -> System.out.println(goal.line()));
    return "{\"bytes\": %d, \"transferSeconds\": %.6f, \"copySeconds\": %.6f, \"goals\": %s}"
        .formatted(LARGE, move, copy, goals.stream().map(Goal::json).toList());
  }

  private double goal() {
    return path == GpuPath.IPC && TestGpus.count() == 1 ? GOAL_OF_ONE_COPY : GOAL;
  }

  private String small() {
    List<SourceBuffer> batch = sources(BATCH, SMALL);
    List<SourceBuffer> one = batch.subList(0, 1);
    move(batch);
    double[] together = new double[RUNS];
    double[] single = new double[RUNS];
    List<Double> calls = new ArrayList<>();
    for (int run = 0; run < RUNS; run++) {
      for (int i = 0; i < COUNT / BATCH; i++) {
        Took took = move(batch);
        together[run] += took.seconds();
        Arrays.stream(took.callSeconds()).forEach(calls::add);
      }
      for (int i = 0; i < COUNT; i++) {
        single[run] += move(one).seconds();
      }
    }
    Collections.sort(calls);
    double call = calls.get(calls.size() / 2);
    double batched = median(together);
    double alone = median(single);
    System.out.printf(
        Locale.ROOT,
        "%,d transfers of %,d bytes: %.3f ms in batches of %d, %.3f ms one by one: %.1fx; a call"
            + " for a batch holds its thread for %.1f us%n",
        COUNT,
        SMALL,
        batched * 1e3,
        BATCH,
        alone * 1e3,
        alone / batched,
        call * 1e6);
    Goal times =
        Goal.least(
            COUNT + " transfers of 64 KiB by " + path + " in batches, times as fast as one by one",
            alone / batched,
            10,
            "x");
    Goal held =
        Goal.most("time of the caller's thread in a call for a batch", call * 1e6, 100, "us");
    System.out.println(times.line());
    System.out.println(held.line());
    return """
    {"count": %d, "bytes": %d, "batch": %d, "batchedSeconds": %.6f, "singleSeconds": %.6f,\
     "callSeconds": %.9f, "goals": [%s, %s]}\
    """
        .formatted(COUNT, SMALL, BATCH, batched, alone, call, times.json(), held.json());
  }

  private List<SourceBuffer> sources(int count, long bytes) {
    TypedBuffer content = Content.of(BufferShape.of(DataType.INT8, bytes), bytes);
    List<SourceBuffer> sources = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      sources.add(SourceBuffer.of(device(0), arrays.copy(0, content)));
    }
    return sources;
  }

  /** The time from the receiver's call to the end at both ends. */
  private Took move(List<SourceBuffer> sources) {
    long[] keys = LongStream.range(nextKey, nextKey + sources.size()).toArray();
    nextKey += sources.size();
    List<BufferShape> shapes =
        sources.stream().map(each -> BufferShape.of(DataType.INT8, each.buffer().count())).toList();
    long start = System.nanoTime();
    List<ReceivedBuffer> received =
        executors
            .get(1)
            .receive(device(1), shapes, Collections.nCopies(sources.size(), device(0)), keys);
    double receiveCall = seconds(start);
    long sending = System.nanoTime();
    List<Event> sent =
        executors.get(0).send(sources, Collections.nCopies(sources.size(), device(1)), keys);
    double sendCall = seconds(sending);
    sent.forEach(Content::await);
    received.forEach(each -> Content.await(each.event()));
    double all = seconds(start);
    received.forEach(ReceivedBuffer::close);
    return new Took(all, new double[] {receiveCall, sendCall});
  }

  /** The time of one copy among several, one after the other. */
  private double copy(TypedBuffer from, TypedBuffer to) {
    CudaLane lane = arrays.lane(0);
    long start = System.nanoTime();
    Content.await(
        lane.submit(
            "plain copies",
            () -> {
              for (int i = 0; i < COPIES; i++) {
                lane.stream().copyOnDevice(to.address(), from.address(), from.bytes());
              }
            }));
    return seconds(start) / COPIES;
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  @Override
  public void close() {
    executors.close();
    arrays.close();
  }
}
