package io.weft.transfers.gpu;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.GpuBufferCounters;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.nccl.DeviceArena;
import io.weft.collectives.nccl.NcclCommunicators;
import io.weft.collectives.nccl.NcclOptions;
import io.weft.device.Deadline;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.transfers.gpu.GpuCommunicators.GpuEndpoint;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Creates communicators whose ranks are the GPUs of executors. Before NCCL starts, the ranks tell
 * each other what they have, so all of them refuse if one has no GPU. The GPU is opened for the
 * first communicator, and its memory for buffers is kept for later ones. Thread-safe.
 */
public final class GpuRanks implements CommunicatorFactory, AutoCloseable {
  private static final Duration DRIVER_TIMEOUT = Duration.ofSeconds(30);

  private final Options options;
  private final GpuOpener<OpenGpu> opening;
  private final AtomicBoolean freeing = new AtomicBoolean();

  /**
   * The properties of this executor.
   *
   * @param life id and incarnation of the executor, for messages
   * @param end its kernel and GPU, which may be absent
   * @param rules decide whether NCCL may connect two ranks, the same on all executors
   * @param libraries where the driver and NCCL are
   * @param bufferBytes the limit of GPU memory for buffers of communicators
   * @param besideNccl creates the communicators of hosts over which the ranks agree
   */
  public record Options(
      String life,
      PathEnd end,
      PathRules rules,
      ProbeOptions libraries,
      long bufferBytes,
      CommunicatorFactory besideNccl) {}

  /** An open GPU and the memory for its communicators' buffers. */
  private record OpenGpu(CudaDevice device, DeviceArena arena) {
    /** Memory that the GPU still uses keeps the context until the process ends. */
    void close() {
      arena.close();
      if (arena.statistics().usedBytes() == 0) {
        device.close();
      }
    }
  }

  /** Creates a factory whose GPU, if there is one, is not open yet. */
  public GpuRanks(Options options) {
    this.options = options;
    this.opening =
        new GpuOpener<>(options.end().gpu().toString(), this::open, OpenGpu::close, DRIVER_TIMEOUT);
  }

  private OpenGpu open() {
    CudaDevice device =
        CudaLibrary.load(options.libraries()).open(UUID.fromString(options.end().gpu().uuid()));
    try {
      return new OpenGpu(
          device,
          DeviceArena.open(
              device, options.libraries(), options.bufferBytes(), options.rules().names()));
    } catch (RuntimeException | Error e) {
      device.close();
      throw e;
    }
  }

  /**
   * Creates a communicator together with the other ranks.
   *
   * @throws CollectiveException of kind INVALID, the same on all ranks, if one has no GPU with NCCL
   *     or NCCL cannot connect two of them, naming the ranks
   */
  @Override
  public GpuCommunicator create(Bootstrap bootstrap, CommunicatorOptions common) {
    Deadline deadline = Deadline.after(common.timeout());
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, deadline);
    GpuEndpoint own = new GpuEndpoint(options.life(), options.end());
    List<GpuEndpoint> ends =
        rounds.exchange("gpuranks", own::encode).stream().map(GpuEndpoint::decode).toList();
    requireGpus(ends);
    requirePaths(ends);
    rounds.barrier("gpuopened", () -> requireOpen(bootstrap.rank(), deadline));
    OpenGpu gpu = opening.get(Duration.ofNanos(deadline.remainingNanos()));
    NcclOptions nccl = NcclOptions.on(gpu.device()).withArena(gpu.arena());
    return new NcclCommunicators(options.libraries(), nccl, options.besideNccl())
        .create(bootstrap, common);
  }

  private static void requireGpus(List<GpuEndpoint> ends) {
    List<Integer> without = new ArrayList<>();
    for (int rank = 0; rank < ends.size(); rank++) {
      if (!ends.get(rank).end().gpu().hasNccl()) {
        without.add(rank);
      }
    }
    if (!without.isEmpty()) {
      GpuEndpoint first = ends.get(without.get(0));
      throw refusal(
          without,
          "every rank needs a GPU with NCCL, but %s %s none: executor %s has %s"
              .formatted(
                  CollectiveException.name(without),
                  without.size() == 1 ? "has" : "have",
                  first.life(),
                  first.end().gpu()));
    }
  }

  private void requirePaths(List<GpuEndpoint> ends) {
    for (int one = 0; one < ends.size(); one++) {
      for (int other = one + 1; other < ends.size(); other++) {
        Optional<String> obstacle =
            options.rules().obstacle(ends.get(one).end(), ends.get(other).end());
        if (obstacle.isPresent()) {
          throw refusal(
              List.of(one, other),
              "NCCL cannot connect rank %d on executor %s and rank %d on executor %s: %s"
                  .formatted(
                      one, ends.get(one).life(), other, ends.get(other).life(), obstacle.get()));
        }
      }
    }
  }

  private void requireOpen(int rank, Deadline deadline) {
    try {
      OpenGpu unused = opening.get(Duration.ofNanos(deadline.remainingNanos()));
    } catch (UnavailableLibraryException
        | CudaException
        | IllegalStateException
        | IllegalArgumentException e) {
      throw new CollectiveException(
          // A killed task says nothing about the GPU.
          Thread.currentThread().isInterrupted() ? Kind.ABORTED : Kind.INVALID,
          List.of(rank),
          "rank %d cannot open %s of executor %s: %s"
              .formatted(rank, options.end().gpu(), options.life(), e.getMessage()),
          e);
    }
  }

  private static CollectiveException refusal(List<Integer> ranks, String message) {
    return new CollectiveException(Kind.INVALID, ranks, message);
  }

  /**
   * Starts to free memory for buffers that was not used for that time, on a daemon thread
   * "weft-gpu-idle", because the driver may wait for running work.
   */
  public void freeIdle(Duration time) {
    Optional<OpenGpu> gpu = opening.now();
    if (statistics().idleBytes() == 0 || !freeing.compareAndSet(false, true)) {
      return;
    }
    Thread thread =
        new Thread(
            () -> {
              try {
                gpu.ifPresent(open -> open.arena().freeIdle(time));
              } finally {
                freeing.set(false);
              }
            },
            "weft-gpu-idle");
    thread.setDaemon(true);
    thread.start();
  }

  /** The counters of the memory for buffers. */
  public GpuBufferCounters statistics() {
    return opening.now().map(gpu -> gpu.arena().statistics()).orElse(GpuBufferCounters.NONE);
  }

  /** Frees everything. No communicator may be open. */
  @Override
  public void close() {
    opening.close();
  }
}
