package io.weft.collectives.process;

import com.sun.jna.Function;
import io.weft.collectives.Algorithm;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.SocketBootstrap;
import io.weft.collectives.contract.CommunicatorContract;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RandomStep;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.collectives.nccl.DeviceBuffer;
import io.weft.collectives.nccl.GpuDoubles;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.DoubleLibraries;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;

/**
 * A rank in its own Java virtual machine, controlled by lines of text. Answers start with "= ", to
 * distinguish them from log lines.
 */
final class RankProcess implements AutoCloseable {
  /** The property that says when the rank copies by the kernel. */
  static final String KERNEL_COPY = "weft.test.kernelCopy";

  private static final int TIMEOUT_SECONDS = 150;

  private final Process process;
  private final BufferedReader out;
  private final PrintStream in;

  /**
   * Starts a rank.
   *
   * @param host its host identity
   * @param properties of its Java virtual machine, such as -Dweft.test.gpuDoubles=FOLDER for NCCL
   */
  RankProcess(
      Path folder, String host, int rank, int nranks, Duration timeout, String... properties)
      throws IOException {
    this(Map.of(), folder, host, rank, nranks, timeout, properties);
  }

  /** Starts a rank with more environment variables. */
  RankProcess(
      Map<String, String> environment,
      Path folder,
      String host,
      int rank,
      int nranks,
      Duration timeout,
      String... properties)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of(properties));
    command.addAll(
        List.of(
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            RankProcess.class.getName(),
            folder.toString(),
            host,
            Integer.toString(rank),
            Integer.toString(nranks),
            Long.toString(timeout.toMillis())));
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
    builder.environment().putAll(environment);
    process = builder.start();
    out = process.inputReader(StandardCharsets.UTF_8);
    in = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
  }

  void order(String line) {
    in.println(line);
  }

  /** The answer to the next order; orders are answered one after the other. */
  String answer() throws Exception {
    return CompletableFuture.supplyAsync(this::read).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
  }

  private String read() {
    try {
      String line = out.readLine();
      while (line != null && !line.startsWith("= ")) {
        line = out.readLine();
      }
      return line == null ? "its process has ended" : line.substring(2);
    } catch (IOException e) {
      return e.toString();
    }
  }

  /** Sends the process a signal by its name. */
  void signal(String name) throws IOException, InterruptedException {
    Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).start();
    if (!kill.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS) || kill.exitValue() != 0) {
      throw new IOException("kill -" + name + " " + process.pid() + " failed");
    }
  }

  /** Ends the process, even a stopped one. */
  @Override
  public void close() {
    process.destroyForcibly();
  }

  /**
   * Where Yama lets only ancestors read a process's memory, this lets the other ranks do so too.
   */
  private static void allowReaders() {
    int setPtracer = 0x59616d61;
    long any = -1;
    // Without Yama the call is an error, and nothing is to be allowed.
    int unused = Function.getFunction("c", "prctl").invokeInt(new Object[] {setPtracer, any});
  }

  /** Runs the rank until its input ends. */
  public static void main(String[] args) throws Exception {
    allowReaders();
    int number = Integer.parseInt(args[2]);
    CommunicatorFactory hosts =
        new HostCommunicators(
            HostOptions.defaults()
                .withFolder(Path.of(args[0], args[1]))
                .withHostIdentity(args[1])
                .withKernelCopy(
                    KernelCopy.valueOf(
                        System.getProperty(KERNEL_COPY, KernelCopy.MEASURED.name()))));
    Rank rank =
        new Rank(
            GpuDoubles.isForThisProcess() ? ofNccl(number, hosts) : hosts,
            number,
            Integer.parseInt(args[3]),
            Duration.ofMillis(Long.parseLong(args[4])));
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      rank.obey(line);
    }
    System.exit(0);
  }

  private static CommunicatorFactory ofNccl(int rank, CommunicatorFactory hosts) {
    return GpuDoubles.factory(Integer.getInteger("weft.test.gpu", rank), hosts);
  }

  private static void say(String text) {
    System.out.println("= " + text.replace('\n', ' '));
  }

  /** The side of the child process. */
  private static final class Rank {
    private final CommunicatorFactory factory;
    private final int rank;
    private final int nranks;
    private final CommunicatorOptions options;
    private Bootstrap bootstrap;
    private Communicator communicator;

    private Rank(CommunicatorFactory factory, int rank, int nranks, Duration timeout) {
      this.factory = factory;
      this.rank = rank;
      this.nranks = nranks;
      this.options = CommunicatorOptions.DEFAULT.withTimeout(timeout);
    }

    private void obey(String line) throws IOException {
      String[] order = line.split(" ", 2);
      try {
        switch (order[0]) {
          case "listen" -> {
            bootstrap = SocketBootstrap.listen("127.0.0.1", nranks);
            say(bootstrap.id().encode());
          }
          case "join" -> {
            bootstrap = SocketBootstrap.join(UniqueId.decode(order[1]), rank, nranks);
            say("joins");
          }
          case "create" -> {
            communicator = factory.create(bootstrap, options);
            bootstrap.close();
            say("created");
          }
          case "relisten" -> {
            bootstrap = SocketBootstrap.listen("127.0.0.1", nranks - 1);
            say(bootstrap.id().encode());
          }
          case "rejoin" -> {
            String[] where = order[1].split(" ");
            int place = Integer.parseInt(where[1]);
            bootstrap = SocketBootstrap.join(UniqueId.decode(where[0]), place, nranks - 1);
            say("joins");
          }
          case "check" -> check();
          case "await" -> awaitEnd(Integer.parseInt(order[1]));
          case "gather" -> gather();
          case "swap" -> swap();
          case "exchange" -> exchange();
          case "loop" -> loop(DataType.valueOf(order[1]));
          case "die" -> {
            DoubleLibraries.ncclControls().ncclDoubleDieInside(Integer.parseInt(order[1]));
            loop(DataType.INT32);
          }
          case "lose" -> {
            DoubleLibraries.cudaControls().cudaDoubleLose(rank, 719);
            loop(DataType.INT32);
          }
          case "replay" -> replay(Integer.parseInt(order[1]));
          case "close" -> {
            communicator.close();
            say("closed");
          }
          default -> throw new IOException(line);
        }
      } catch (CollectiveException e) {
        say(e.kind() + " " + e.ranks() + " " + e.getMessage());
      } catch (AssertionError e) {
        say("wrong: " + e.getMessage());
      }
    }

    private void check() {
      int nranks = communicator.nranks();
      Random random = new Random(nranks);
      for (int step = 0; step < 60; step++) {
        RandomStep.run(communicator, random, "step " + step);
      }
      TypedBuffer large = CommunicatorContract.filled(communicator, DataType.FLOAT32, 700_001);
      communicator.allReduce(large, ReduceOp.SUM);
      Values.check("large", large, i -> Values.reduced(DataType.FLOAT32, ReduceOp.SUM, nranks, i));
      say("right");
    }

    /** Runs large exchanges of two ranks, and says how many of them the kernel has copied. */
    private void exchange() {
      long part = 200_001;
      TypedBuffer all = CommunicatorContract.buffer(DataType.FLOAT32, 2 * part);
      communicator.allGather(
          CommunicatorContract.filled(communicator, DataType.FLOAT32, part), all);
      Values.check("gathered", all, i -> Values.of((int) (i / part), i % part));
      TypedBuffer parts = CommunicatorContract.filled(communicator, DataType.FLOAT32, 2 * part);
      communicator.run(new AllToAll(parts, all));
      Values.check("swapped", all, i -> Values.of((int) (i / part), rank * part + i % part));
      RaggedContract.exchange(
          communicator, DataType.FLOAT32, 2, 3, (from, to, update) -> 9_000 + 5_000 * from);
      say(Long.toString(communicator.metrics().total(Algorithm.KERNEL_COPY).calls()));
    }

    /** Reports the end of another rank while no operation waits for it. */
    private void awaitEnd(int peer) {
      InPlaceRegions ranks = (InPlaceRegions) communicator;
      CollectiveException end =
          Awaitility.await()
              .atMost(Duration.ofSeconds(TIMEOUT_SECONDS / 2))
              .until(() -> ranks.peerFailure(peer), Optional::isPresent)
              .orElseThrow();
      throw end;
    }

    /**
     * Replays a graph until that fails. With chunks it dies inside the replay, after this many of
     * them.
     */
    private void replay(int chunks) {
      CudaDevice device = GpuDoubles.device(rank);
      try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 4L << 20);
          CudaMemory memory = pool.take(4 * 40_000)) {
        TypedBuffer data = TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT32, 40_000);
        Values.fill(data, rank);
        try (Recording recording =
            StepRecording.record(
                communicator,
                MovedBuffers.REFUSE,
                body -> {
                  body.allReduce(data, ReduceOp.MAX);
                  body.broadcast(data, 0);
                })) {
          for (int round = 0; round < Integer.MAX_VALUE; round++) {
            if (round == 10) {
              say(recording.whyNoGraph().orElse("replays"));
              DoubleLibraries.ncclControls().ncclDoubleDieInside(chunks);
            }
            recording.replay();
          }
        }
      }
    }

    /** Runs large all-gathers until one fails. Most of their time is spent in copies. */
    private void gather() {
      TypedBuffer part = CommunicatorContract.filled(communicator, DataType.INT8, 8 << 20);
      TypedBuffer all = CommunicatorContract.buffer(DataType.INT8, (long) (8 << 20) * nranks);
      copy(() -> communicator.allGather(part, all));
    }

    /** As {@link #gather}, with parts for each rank. */
    private void swap() {
      TypedBuffer sent =
          CommunicatorContract.filled(communicator, DataType.INT8, (long) (8 << 20) * nranks);
      TypedBuffer received = CommunicatorContract.buffer(DataType.INT8, sent.count());
      copy(() -> communicator.run(new AllToAll(sent, received)));
    }

    private void copy(Runnable operation) {
      for (int round = 0; round < Integer.MAX_VALUE; round++) {
        operation.run();
        if (round == 10) {
          boolean byKernel = communicator.metrics().total(Algorithm.KERNEL_COPY).calls() > 0;
          say(byKernel ? "loops by the kernel" : "loops");
        }
      }
    }

    /** Runs all-reduces until one fails; NCCL takes maxima of integers only. */
    private void loop(DataType type) {
      TypedBuffer data = CommunicatorContract.filled(communicator, type, 40_000);
      for (int round = 0; round < Integer.MAX_VALUE; round++) {
        communicator.allReduce(data, ReduceOp.MAX);
        if (round == 10) {
          say("loops");
        }
      }
    }
  }
}
