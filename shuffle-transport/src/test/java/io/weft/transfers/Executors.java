package io.weft.transfers;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.clique.CliqueCommunicators;
import io.weft.device.Device;
import io.weft.device.cuda.CudaLibrary;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.transfers.DeviceTransfers.GpuResources;
import io.weft.transfers.TransferWire.CommunicatorWire;
import io.weft.transfers.gpu.TransferGpu;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

/**
 * Executors "0", "1", … of one process, each with an arena and one device unless told otherwise.
 */
final class Executors implements AutoCloseable {
  /** Creates the communicators of an executor. */
  interface Communicators {
    CommunicatorFactory of(Path folder, String executor);
  }

  /** The limit of receive buffers on a GPU. */
  static final long GPU_BYTES = 256 << 20;

  private static final long MIB = 1 << 20;

  private final Path folder;
  private final Communicators communicators;
  private TransferOptions options;
  private final Map<String, String> incarnations = new ConcurrentHashMap<>();
  private final PairRendezvous rendezvous = new PairRendezvous();
  private CliqueCommunicators.BootstrapOpener network = rendezvous;
  private final Map<String, DeviceTransfers> transfers = new LinkedHashMap<>();
  private final Map<String, SharedArena> arenas = new LinkedHashMap<>();
  private final Map<String, TransferGpu> gpus = new LinkedHashMap<>();
  private TransferWire.Factory wires = CommunicatorWire::new;
  private GpuPath gpuWay;
  private boolean followsDevices = true;

  Executors(Path folder, Communicators communicators, TransferOptions options) {
    this.folder = folder;
    this.communicators = communicators;
    this.options = options;
  }

  static DeviceId device(int executor) {
    return new DeviceId(Integer.toString(executor), 0);
  }

  Executors wires(TransferWire.Factory factory) {
    wires = factory;
    return this;
  }

  /** Sets the rendezvous of executors that start later. */
  Executors network(CliqueCommunicators.BootstrapOpener instead) {
    network = instead;
    return this;
  }

  /** Of the executors that start from now on. */
  Executors options(TransferOptions later) {
    options = later;
    return this;
  }

  /** Gives executors that start later a GPU, each the one of its number. */
  Executors gpus(GpuPath way) {
    gpuWay = way;
    return this;
  }

  /** Executors that start later give sends to NCCL when the source is complete, not before. */
  Executors waitingForDevices() {
    followsDevices = false;
    return this;
  }

  /** The GPU of executor n, which is GPU n. */
  static TransferGpu gpu(int executor, String incarnation, GpuPath way, CommunicatorFactory hosts) {
    return gpu(executor, incarnation, way, true, hosts);
  }

  private static TransferGpu gpu(
      int executor,
      String incarnation,
      GpuPath way,
      boolean followsDevices,
      CommunicatorFactory hosts) {
    CudaLibrary.GpuDescription gpu = TestGpus.cuda().gpus().get(TestGpus.ordinal(executor));
    return new TransferGpu(
        new TransferGpu.Options(
            executor + "@" + incarnation,
            new PathEnd(way.kernel(executor), way.end(gpu)),
            way.rules(),
            TestGpus.options(),
            GPU_BYTES,
            followsDevices,
            hosts));
  }

  /** Starts more executors. */
  Executors start(int count) {
    for (int i = 0; i < count; i++) {
      start(transfers.size(), "first", 1);
    }
    return this;
  }

  /** Starts an executor, or starts it again as a new incarnation. */
  DeviceTransfers start(int executor, String incarnation, int devices) {
    String id = Integer.toString(executor);
    incarnations.put(id, incarnation);
    List<DeviceId> own =
        IntStream.range(0, devices).mapToObj(ordinal -> new DeviceId(id, ordinal)).toList();
    try {
      Path home = Files.createDirectories(folder.resolve(id + "-" + incarnation));
      SharedArena arena =
          SharedArena.open(new ArenaOptions(home, List.of(), 4 * MIB, 64 * MIB, 0, 0));
      arenas.put(id, arena);
      CommunicatorFactory hosts = communicators.of(folder, id);
      Optional<GpuResources> gpu = Optional.empty();
      if (gpuWay != null) {
        gpus.put(id, gpu(executor, incarnation, gpuWay, followsDevices, hosts));
        gpu = Optional.of(gpus.get(id).resources(hosts));
      }
      Device.Kind kind = gpuWay == null ? Device.Kind.HOST : Device.Kind.CUDA;
      DeviceTransfers made =
          new DeviceTransfers(
              new TestMembership(id, own, incarnations, kind),
              new DeviceTransfers.Resources(hosts, network, wires, arena, gpu),
              options);
      transfers.put(id, made);
      return made;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  DeviceTransfers get(int executor) {
    return transfers.get(Integer.toString(executor));
  }

  SharedArena arena(int executor) {
    return arenas.get(Integer.toString(executor));
  }

  /** One of its counters. */
  long count(int executor, TransferCounter counter) {
    return get(executor).statistics().get(counter);
  }

  PairRendezvous rendezvous() {
    return rendezvous;
  }

  @Override
  public void close() {
    new ArrayList<>(transfers.values()).forEach(DeviceTransfers::close);
    gpus.values().forEach(TransferGpu::close);
    arenas.values().forEach(SharedArena::close);
  }
}
