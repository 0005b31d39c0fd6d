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
 * This executor's GPU as an end of transfers. The context is created with the first transfer, so an
 * executor without transfers takes no GPU memory. Thread-safe. Owns the context and the pools; must
 * be closed after the transfers.
 */
public final class TransferGpu implements AutoCloseable {
  /** How long a closing communicator waits for the other end, which closes at the same time. */
  private static final Duration LINGER = Duration.ofMillis(500);

  private static final long PINNED_BYTES = 1L << 30;

  /** The timeout for a driver that does not answer. */
  private static final Duration DRIVER_TIMEOUT = Duration.ofSeconds(30);

  private final Options options;
  private final GpuOpening opening;

  /**
   * The properties of an end.
   *
   * @param life id and incarnation of the executor, for messages
   * @param end this executor's kernel and GPU, which must exist
   * @param rules for the choice of paths, the same on all executors
   * @param libraries where the driver and NCCL are
   * @param bufferBytes the limit of GPU memory for receive buffers
   * @param followsDevices whether NCCL gets a send when its source is recorded; else when it is
   *     complete
   * @param besideNccl creates the host communicators that coordinate the ends of an NCCL
   *     communicator
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

  /** Creates an end whose GPU is not open yet. */
  public TransferGpu(Options options) {
    this.options = options;
    this.opening = new GpuOpening(options.end().gpu().toString(), this::open, DRIVER_TIMEOUT);
  }

  private OpenedGpu open() {
    CudaDevice device =
        CudaLibrary.load(options.libraries()).open(UUID.fromString(options.end().gpu().uuid()));
    return OpenedGpu.of(device, options.bufferBytes(), PINNED_BYTES);
  }

  /**
   * The resources for transfers of this GPU.
   *
   * @param hosts creates communicators of the hosts, for pairs that do not use NCCL
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

  /** Receive buffers on the GPU. The first one opens the GPU. */
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

  /** Frees everything. Receive buffers in use stay until the process ends. */
  @Override
  public void close() {
    opening.close();
  }
}
