package io.weft.crosshost.gpu;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.nccl.DeviceCommunicator;
import io.weft.collectives.nccl.NcclCommunicators;
import io.weft.collectives.nccl.NcclOptions;
import io.weft.crosshost.GpuResources;
import io.weft.crosshost.buffer.BufferStatistics;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.device.probe.ProbeOptions;
import io.weft.peer.PathEnd;
import io.weft.peer.PathRules;
import java.io.IOException;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Supplier;

/**
 * This executor's GPU as an end of transfers. Its context is taken with the first transfer, so an
 * executor that transfers nothing takes no memory of the GPU. Thread-safe. Owns the context and the
 * pools; to be closed after the transfers.
 */
public final class TransferGpu implements AutoCloseable {
  /** Both ends give a communicator up at the same time, or the other has ended. */
  private static final Duration LINGER = Duration.ofMillis(500);

  private static final long PINNED_BYTES = 1L << 30;

  /** A driver that is stuck does not hold up transfers for longer. */
  private static final Duration DRIVER_PATIENCE = Duration.ofSeconds(30);

  private final Options options;
  private final GpuOpening opening;

  /**
   * What an end is made of.
   *
   * @param life of the executor: its id and incarnation, in words
   * @param end this executor's kernel and GPU, which is there
   * @param rules by which ways are chosen, the same on all executors
   * @param libraries where the driver and NCCL are
   * @param bufferBytes the most memory of the GPU for receive buffers
   * @param followsDevices whether NCCL gets what is sent when its source is recorded, or complete
   * @param besideNccl makes the communicators of hosts over which the ends of one of NCCL agree
   */
  public record Options(
      String life,
      PathEnd end,
      PathRules rules,
      ProbeOptions libraries,
      long bufferBytes,
      boolean followsDevices,
      CommunicatorFactory besideNccl) {
    public Options {
      if (!end.gpu().isThere()) {
        throw new IllegalArgumentException("executor " + life + " has " + end.gpu());
      }
    }
  }

  /** An end that has not been used. */
  public TransferGpu(Options options) {
    this.options = options;
    this.opening = new GpuOpening(options.end().gpu().toString(), this::open, DRIVER_PATIENCE);
  }

  private OpenedGpu open() {
    CudaDevice device =
        CudaLibrary.load(options.libraries()).open(UUID.fromString(options.end().gpu().uuid()));
    return OpenedGpu.of(device, options.bufferBytes(), PINNED_BYTES);
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
                NcclOptions.on(opening.get().device()).withLinger(LINGER),
                options.besideNccl());
    RankEnd own = new RankEnd(options.life(), options.end());
    return new GpuResources(
        new GpuCommunicators(own, options.rules(), nccl, hosts), this::wire, new Memory());
  }

  private TransferWire wire(Communicator communicator) {
    if (communicator instanceof HostRoute route) {
      return new HostWire(route, opening.get());
    }
    if (communicator instanceof DeviceCommunicator device) {
      return new NcclWire(device, options.followsDevices());
    }
    throw new IllegalArgumentException(communicator + " does not move memory of GPUs");
  }

  /** Buffers on the GPU, which is opened for the first. */
  private final class Memory implements ReceiveMemory {
    @Override
    public TransferBuffer take(long bytes) throws IOException {
      GpuBuffers buffers;
      try {
        buffers = opening.get().buffers();
      } catch (UnavailableLibraryException | CudaException e) {
        throw new IOException(e.getMessage(), e);
      }
      return buffers.take(bytes);
    }

    @Override
    public Optional<String> obstacle(TypedBuffer source) {
      CudaDevice device;
      try {
        device = opening.get().device();
      } catch (UnavailableLibraryException | CudaException e) {
        return Optional.of(e.getMessage());
      }
      return device
          .whyNotHere(source.address(), source.bytes())
          .map(reason -> reason + "; copy it there first, or send it from device 0, the host");
    }

    @Override
    public BufferStatistics statistics() {
      return opening
          .now()
          .map(gpu -> gpu.buffers().statistics())
          .orElse(new BufferStatistics(0, 0, 0, 0));
    }
  }

  /** Gives everything back; what is still received into stays until the process ends. */
  @Override
  public void close() {
    opening.close();
  }
}
