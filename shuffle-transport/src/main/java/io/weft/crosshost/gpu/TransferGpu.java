package io.weft.crosshost.gpu;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.nccl.NcclCommunicators;
import io.weft.collectives.nccl.NcclOptions;
import io.weft.crosshost.GpuResources;
import io.weft.crosshost.buffer.BufferStatistics;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.crosshost.wire.CommunicatorWire;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.device.probe.ProbeOptions;
import io.weft.peer.PathEnd;
import io.weft.peer.PathRules;
import java.io.IOException;
import java.time.Duration;
import java.util.UUID;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This executor's GPU as an end of transfers. Its context is taken with the first transfer, so an
 * executor that transfers nothing takes no memory of the GPU. Thread-safe. Owns the context and the
 * pools; to be closed after the transfers.
 */
public final class TransferGpu implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TransferGpu.class);

  /** Both ends give a communicator up at the same time, or the other has ended. */
  private static final Duration LINGER = Duration.ofMillis(500);

  private static final long PINNED_BYTES = 1L << 30;

  private final Options options;
  private final Object lock = new Object();
  private Opened opened;
  private boolean closed;

  /**
   * What an end is made of.
   *
   * @param life of the executor: its id and incarnation, in words
   * @param end this executor's kernel and GPU, which is there
   * @param rules by which ways are chosen, the same on all executors
   * @param libraries where the driver and NCCL are
   * @param bufferBytes the most memory of the GPU for receive buffers
   * @param besideNccl makes the communicators of hosts over which the ends of one of NCCL agree
   */
  public record Options(
      String life,
      PathEnd end,
      PathRules rules,
      ProbeOptions libraries,
      long bufferBytes,
      CommunicatorFactory besideNccl) {
    public Options {
      if (!end.gpu().isThere()) {
        throw new IllegalArgumentException("executor " + life + " has " + end.gpu());
      }
    }
  }

  /** What is there from the first transfer on. */
  private record Opened(
      CudaDevice device, CudaMemoryPool memory, CudaMemoryPool pinned, GpuBuffers buffers) {}

  /** An end that has not been used. */
  public TransferGpu(Options options) {
    this.options = options;
  }

  /**
   * What transfers use of this GPU.
   *
   * @param hosts makes communicators of the hosts, for pairs that do without NCCL
   */
  public GpuResources resources(CommunicatorFactory hosts) {
    Supplier<CommunicatorFactory> nccl =
        () ->
            new NcclCommunicators(
                options.libraries(),
                NcclOptions.on(opened().device()).withLinger(LINGER),
                options.besideNccl());
    RankEnd own = new RankEnd(options.life(), options.end());
    return new GpuResources(
        new GpuCommunicators(own, options.rules(), nccl, hosts), this::wire, new Memory());
  }

  private TransferWire wire(Communicator communicator) {
    if (communicator instanceof HostRoute route) {
      Opened gpu = opened();
      return new StagedWire(
          new CommunicatorWire(route.hosts()), gpu.device(), gpu.pinned(), route.timeout());
    }
    return new CommunicatorWire(communicator);
  }

  private Opened opened() {
    synchronized (lock) {
      if (closed) {
        throw new IllegalStateException(options.end().gpu() + " was closed");
      }
      if (opened == null) {
        CudaDevice device =
            CudaLibrary.load(options.libraries()).open(UUID.fromString(options.end().gpu().uuid()));
        CudaMemoryPool memory =
            CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, options.bufferBytes());
        opened =
            new Opened(
                device,
                memory,
                CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, PINNED_BYTES),
                new GpuBuffers(memory));
      }
      return opened;
    }
  }

  /** Buffers on the GPU, which is opened for the first. */
  private final class Memory implements ReceiveMemory {
    @Override
    public TransferBuffer take(long bytes) throws IOException {
      GpuBuffers buffers;
      try {
        buffers = opened().buffers();
      } catch (UnavailableLibraryException | CudaException e) {
        throw new IOException(e.getMessage(), e);
      }
      return buffers.take(bytes);
    }

    @Override
    public BufferStatistics statistics() {
      synchronized (lock) {
        return opened == null ? new BufferStatistics(0, 0, 0, 0) : opened.buffers().statistics();
      }
    }
  }

  /** Gives everything back; what is still received into stays until the process ends. */
  @Override
  public void close() {
    Opened last;
    synchronized (lock) {
      last = opened;
      opened = null;
      closed = true;
    }
    if (last == null) {
      return;
    }
    long out = last.buffers().statistics().out();
    last.pinned().close();
    last.memory().close();
    if (out == 0) {
      last.device().close();
    } else {
      LOG.warn("{} receive buffers on {} are still held; its context stays", out, last.device());
    }
  }
}
