package io.weft.transfers.gpu;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Operation;
import io.weft.collectives.Recording;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.Topology;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.nccl.DeviceCommunicator;
import io.weft.collectives.nccl.NcclCommunicators;
import io.weft.collectives.nccl.NcclOptions;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.transfers.DeviceTransfers.GpuResources;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.ReceiveMemory;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import io.weft.transfers.TransferBuffer;
import io.weft.transfers.TransferWire;
import io.weft.transfers.TransferWire.CommunicatorWire;
import io.weft.transfers.gpu.GpuCommunicators.GpuEndpoint;
import io.weft.transfers.gpu.SharedRoom.ReleasedRooms;
import io.weft.transfers.gpu.TransferGpuState.GpuBuffers;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * This executor's GPU as an end of transfers. The context is created with the first transfer, so an
 * executor without transfers takes no GPU memory. Thread-safe. Owns the context and the pools; must
 * be closed after the transfers.
 */
public final class TransferGpu implements AutoCloseable {
  /** How long a closing communicator waits for the other end, which closes at the same time. */
  private static final Duration LINGER = Duration.ofMillis(500);

  /**
   * The most blocks of a transfer's kernel, which waits for the other end on the GPU. A GPU has
   * about 130 places for blocks, so several transfers can wait without taking all of them.
   */
  private static final int MAX_BLOCKS = 16;

  private static final long PINNED_BYTES = 1L << 30;

  /** The timeout for a driver that does not answer. */
  private static final Duration DRIVER_TIMEOUT = Duration.ofSeconds(30);

  private final Options options;
  private final GpuOpener<TransferGpuState> opening;

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
    this.opening =
        new GpuOpener<>(
            options.end().gpu().toString(), this::open, TransferGpuState::close, DRIVER_TIMEOUT);
  }

  private TransferGpuState open() {
    CudaDevice device =
        CudaLibrary.load(options.libraries()).open(UUID.fromString(options.end().gpu().uuid()));
    return TransferGpuState.of(device, options.bufferBytes(), PINNED_BYTES);
  }

  /**
   * The resources for transfers of this GPU.
   *
   * @param hosts creates communicators of the hosts, for pairs that do not use NCCL
   */
  public GpuResources resources(CommunicatorFactory hosts) {
    Supplier<CommunicatorFactory> nccl =
        () -> {
          TransferGpuState gpu = opening.get();
          return new NcclCommunicators(
              options.libraries(),
              NcclOptions.on(gpu.device()).withLinger(LINGER).forPairs(MAX_BLOCKS),
              options.besideNccl());
        };
    GpuEndpoint own = new GpuEndpoint(options.life(), options.end());
    return new GpuResources(
        new GpuCommunicators(own, options.rules(), nccl, hosts), this::wire, new Memory());
  }

  private TransferWire wire(Communicator communicator) {
    if (communicator instanceof HostPathCommunicator route) {
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
    public void reclaim() {
      opening.now().map(TransferGpuState::released).ifPresent(ReleasedRooms::poll);
    }

    @Override
    public BufferStatistics statistics() {
      return opening.now().map(gpu -> gpu.buffers().statistics()).orElse(BufferStatistics.NONE);
    }
  }

  /** Frees everything. Receive buffers in use stay until the process ends. */
  @Override
  public void close() {
    opening.close();
  }

  /**
   * A wire between two GPUs by NCCL. The GPU of each end can wait for sources itself. Manifests
   * travel over the hosts, because a message from GPU to GPU takes several launches and copies.
   */
  static final class NcclWire implements TransferWire {
    private final DeviceCommunicator communicator;
    private final boolean followsDevices;
    private final CommunicatorWire wire;
    private final CommunicatorWire hosts;

    /**
     * Creates the wire of a communicator.
     *
     * @param communicator of pairs, with two ranks; the caller closes it
     * @param followsDevices whether sends of this end may wait for their sources on the GPU
     */
    NcclWire(DeviceCommunicator communicator, boolean followsDevices) {
      this.communicator = communicator;
      this.followsDevices = followsDevices;
      this.wire = new CommunicatorWire(communicator);
      this.hosts = new CommunicatorWire(communicator.beside());
    }

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return hosts.exchange(mine);
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      wire.move(sends, receives);
    }

    @Override
    public boolean followsDevices() {
      return followsDevices;
    }

    @Override
    public void moveBehind(
        List<Event> sources, List<TypedBuffer> sends, List<TypedBuffer> receives) {
      communicator.runGroup(wire.group(sends, receives), sources);
    }

    @Override
    public Optional<RuntimeException> failure() {
      return wire.failure().or(hosts::failure);
    }

    @Override
    public void abort(String reason) {
      wire.abort(reason);
    }
  }

  /**
   * The host communicator of a clique of GPUs. Its type shows that it does not move GPU memory.
   *
   * @param hosts moves host memory only; closed with this one
   * @param mayMap whether the ends try to map each other's memory before they stage arrays; the
   *     same at both ends
   * @param mapped receives the result: the reason of a failure, or an empty text
   */
  record HostPathCommunicator(Communicator hosts, boolean mayMap, Consumer<String> mapped)
      implements Communicator {
    @Override
    public int rank() {
      return hosts.rank();
    }

    @Override
    public int nranks() {
      return hosts.nranks();
    }

    @Override
    public UniqueId id() {
      return hosts.id();
    }

    @Override
    public Duration timeout() {
      return hosts.timeout();
    }

    @Override
    public Topology topology() {
      return hosts.topology();
    }

    @Override
    public CollectiveMetrics metrics() {
      return hosts.metrics();
    }

    @Override
    public void run(Operation operation) {
      hosts.run(operation);
    }

    @Override
    public void runGroup(List<Operation> operations) {
      hosts.runGroup(operations);
    }

    @Override
    public Event submit(Operation operation, Lane lane) {
      return hosts.submit(operation, lane);
    }

    @Override
    public Event submitGroup(List<Operation> operations, Lane lane) {
      return hosts.submitGroup(operations, lane);
    }

    @Override
    public SymmetricBuffer symmetric(DataType type, long count) {
      return hosts.symmetric(type, count);
    }

    @Override
    public Recording record(MovedBuffers moved, Consumer<Communicator> body) {
      return hosts.record(moved, body);
    }

    @Override
    public Optional<CollectiveException> failure() {
      return hosts.failure();
    }

    @Override
    public void abort(String reason) {
      hosts.abort(reason);
    }

    @Override
    public void close() {
      hosts.close();
    }
  }

  /**
   * A wire between two GPUs over the hosts' communicator: mapped if both ends can map, else staged.
   * The choice is made on first use, so that the wire can be aborted meanwhile.
   */
  static final class HostWire implements TransferWire {
    private final HostPathCommunicator route;
    private final TransferGpuState gpu;
    private final TransferWire host;
    private TransferWire chosen;

    /** Creates a wire that has not chosen yet. */
    HostWire(HostPathCommunicator route, TransferGpuState gpu) {
      this.route = route;
      this.gpu = gpu;
      this.host = new CommunicatorWire(route.hosts());
    }

    private TransferWire chosen() {
      if (chosen == null) {
        Optional<SharedRoom> room = route.mayMap() ? openRoom() : Optional.empty();
        chosen =
            room.isPresent()
                ? new IpcWire(host, this::isAwaited, room.get(), gpu.released(), route.timeout())
                : new StagedWire(host, gpu.device(), gpu.pinned(), route.timeout());
      }
      return chosen;
    }

    /** Opens a room at both ends, or at neither. */
    private Optional<SharedRoom> openRoom() {
      int unused = gpu.released().poll();
      SharedRoom room = null;
      String obstacle = "";
      try {
        room = SharedRoom.take(gpu.device(), gpu.shared());
      } catch (CudaException | IllegalStateException e) {
        obstacle = String.valueOf(e.getMessage());
      }
      try {
        obstacle = obstacle(obstacle, room);
      } catch (RuntimeException e) {
        discard(room);
        throw e;
      }
      route.mapped().accept(obstacle);
      if (obstacle.isEmpty()) {
        return Optional.of(room);
      }
      discard(room);
      return Optional.empty();
    }

    private static void discard(SharedRoom room) {
      if (room != null) {
        room.close();
      }
    }

    /** Why one of the ends cannot map; empty if the room is open at both ends. */
    private String obstacle(String own, SharedRoom room) {
      Deadline deadline = Deadline.after(route.timeout());
      BootstrapRounds rounds =
          new BootstrapRounds(new CommunicatorBootstrap(route.hosts()), deadline);
      Optional<String> either =
          rounds.exchange("ipcroom", () -> own.getBytes(StandardCharsets.UTF_8)).stream()
              .map(reason -> new String(reason, StandardCharsets.UTF_8))
              .filter(reason -> !reason.isEmpty())
              .findFirst();
      if (either.isPresent()) {
        return either.get();
      }
      try {
        room.open(route.hosts(), deadline);
        return "";
      } catch (CollectiveException e) {
        if (e.kind() != Kind.INVALID) {
          throw e;
        }
        return e.getMessage();
      }
    }

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return chosen().exchange(mine);
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      chosen().move(sends, receives);
    }

    @Override
    public boolean holdsWantedMemory() {
      return chosen != null && chosen.holdsWantedMemory();
    }

    private boolean isAwaited() {
      return route.hosts() instanceof InPlaceRegions hosts && hosts.isAwaitedBy(1 - route.rank());
    }

    @Override
    public Optional<RuntimeException> failure() {
      return host.failure();
    }

    @Override
    public void abort(String reason) {
      host.abort(reason);
    }

    @Override
    public void close() {
      if (chosen != null) {
        chosen.close();
      }
    }
  }
}
