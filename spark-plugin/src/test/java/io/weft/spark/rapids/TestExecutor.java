package io.weft.spark.rapids;

import ai.rapids.cudf.TestDeviceMemory;
import com.nvidia.spark.rapids.RapidsConf;
import com.nvidia.spark.rapids.RapidsShuffleHandle;
import com.nvidia.spark.rapids.shuffle.FakeTable;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleServer;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.spark.rapids.LaneSet.LaneParts;
import io.weft.spark.rapids.TransportParts.TransportSettings;
import io.weft.testgpus.DeviceBytes;
import io.weft.transfers.DeviceTransfers.GpuResources;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferWire;
import io.weft.transfers.gpu.TransferGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/**
 * An executor with a GPU, a transport, a server, and tables whose contents follow from their ids.
 */
final class TestExecutor implements AutoCloseable {
  static final int BOUNCE_BYTES = 16 << 10;
  private static final long GPU_BYTES = 256 << 20;

  private final CudaDevice device;
  private final CudaMemoryPool pool;
  private final TransferGpu gpu;
  private final WeftRapidsTransport transport;
  private final RapidsShuffleServer server;
  private final Map<Integer, FakeTable> tables = new ConcurrentHashMap<>();
  private final List<CudaMemory> memories = new ArrayList<>();
  private final AtomicInteger mostSent = new AtomicInteger();

  /**
   * Starts one.
   *
   * @param shared folder of the host
   * @param settings of spark-rapids
   */
  TestExecutor(
      Path shared,
      int executor,
      RapidsGpuPath way,
      Map<String, String> settings,
      Duration deadline,
      Duration idle) {
    HostCommunicators hosts =
        new HostCommunicators(
            HostOptions.defaults().withFolder(shared.resolve("shared")).withHostIdentity("host"));
    gpu = gpu(executor, way, hosts);
    GpuResources resources = gpu.resources(hosts);
    device = Doubles.cuda().open(Doubles.ordinal(executor));
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, GPU_BYTES);
    SparkConf conf =
        new SparkConf(false)
            .set("spark.rapids.shuffle.ucx.bounceBuffers.size", "" + BOUNCE_BYTES)
            .set("spark.rapids.shuffle.ucx.bounceBuffers.device.count", "4")
            .set("spark.rapids.shuffle.maxMetadataSize", "4096");
    settings.forEach(conf::set);
    transport =
        new WeftRapidsTransport(
            BlockManagerId.apply("" + executor, "127.0.0.1", 7000 + executor, Option.empty()),
            new TransportSettings(
                "a version",
                executor,
                conf,
                new RapidsConf(conf),
                new LaneParts(
                    resources.communicators(),
                    each -> new CountingWire(resources.wires().open(each)),
                    CommunicatorOptions.DEFAULT),
                this::bounceMemory,
                deadline,
                idle));
    server = transport.makeServer(this::table);
    server.start();
  }

  private static TransferGpu gpu(int executor, RapidsGpuPath way, HostCommunicators hosts) {
    CudaLibrary.GpuDescription gpu = Doubles.cuda().gpus().get(Doubles.ordinal(executor));
    String nccl = NcclLibrary.load(Doubles.options()).version();
    GpuEnd end = way.end(gpu.uuid().toString(), gpu.ordinal(), gpu.name(), nccl);
    return new TransferGpu(
        new TransferGpu.Options(
            executor + "@first",
            new PathEnd("a kernel", end),
            way.rules(),
            Doubles.options(),
            GPU_BYTES,
            true,
            hosts));
  }

  /** The most blocks that one group has sent. */
  int mostSent() {
    return mostSent.get();
  }

  /** Notes the largest group. */
  private final class CountingWire implements TransferWire {
    private final TransferWire wire;

    CountingWire(TransferWire wire) {
      this.wire = wire;
    }

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return wire.exchange(mine);
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      int unused = mostSent.accumulateAndGet(sends.size(), Math::max);
      wire.move(sends, receives);
    }

    @Override
    public Optional<RuntimeException> failure() {
      return wire.failure();
    }

    @Override
    public void abort(String reason) {
      wire.abort(reason);
    }

    @Override
    public void close() {
      wire.close();
    }
  }

  private TestDeviceMemory bounceMemory(long bytes) {
    CudaMemory memory = pool.take(bytes);
    return new TestDeviceMemory(memory.address(), bytes, memory::close);
  }

  /** The contents of a table. */
  static byte[] content(int id, int bytes) {
    byte[] content = new byte[bytes];
    new Random(id).nextBytes(content);
    return content;
  }

  /** Adds a table to the server. */
  synchronized void add(int id, int bytes) {
    long address = 0;
    if (bytes > 0) {
      CudaMemory memory = pool.take(bytes);
      memories.add(memory);
      address = memory.address();
      DeviceBytes.write(address, content(id, bytes));
    }
    tables.put(id, FakeTable.onGpu(id, address, bytes));
  }

  private RapidsShuffleHandle table(int id) {
    FakeTable table = tables.get(id);
    if (table == null) {
      throw new IllegalStateException("no table " + id);
    }
    return table;
  }

  BlockManagerId id() {
    return server.getId();
  }

  WeftRapidsTransport transport() {
    return transport;
  }

  RapidsShuffleClient client(BlockManagerId peer) {
    return transport.makeClient(peer);
  }

  @Override
  public void close() {
    server.close();
    transport.close();
    gpu.close();
    memories.forEach(CudaMemory::close);
    pool.close();
    device.close();
  }
}
