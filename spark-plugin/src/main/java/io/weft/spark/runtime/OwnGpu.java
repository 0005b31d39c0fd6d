package io.weft.spark.runtime;

import io.weft.collectives.CommunicatorFactory;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.transfers.gpu.GpuRanks;
import io.weft.transfers.gpu.GpuSearch;
import io.weft.transfers.gpu.TransferGpu;
import java.nio.file.Path;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.resource.ResourceInformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds the GPU of this executor: the first that Spark assigned, else the first visible one. */
final class OwnGpu {
  private static final Logger LOG = LoggerFactory.getLogger(OwnGpu.class);

  /** Name of the resource in Spark. */
  private static final String RESOURCE = "gpu";

  private OwnGpu() {}

  /** Finds the GPU, unless the settings exclude it. */
  static GpuEnd find(PluginContext context) {
    GpuEnd found = search(context);
    LOG.info("Executor {} has {}", context.executorID(), found);
    return found;
  }

  private static GpuEnd search(PluginContext context) {
    SparkConf conf = context.conf();
    if (WeftSettings.TRANSPORT.get(conf) != TransportMode.AUTO) {
      return GpuEnd.without(WeftSettings.TRANSPORT + " is not auto");
    }
    ProbeOptions libraries = libraries(conf);
    Capabilities machine =
        libraries.ncclLibrary().isEmpty()
            ? CapabilityProbe.thisMachine()
            : CapabilityProbe.run(libraries);
    return GpuSearch.find(machine, libraries, given(context));
  }

  /**
   * Returns the announced GPU as an end of transfers; empty if there is none.
   *
   * @param besideNccl creates communicators over hosts for GPUs without NCCL
   */
  static Optional<TransferGpu> end(
      SparkConf conf, PeerAddress own, CommunicatorFactory besideNccl) {
    return own.gpu().isThere()
        ? Optional.of(
            new TransferGpu(
                new TransferGpu.Options(
                    own.executorId() + "@" + own.incarnation(),
                    own.pathEnd(),
                    PathSettings.rules(conf),
                    libraries(conf),
                    WeftSettings.TRANSFERS_GPU_MEMORY.get(conf),
                    WeftSettings.TRANSFERS_FOLLOW_DEVICES.get(conf),
                    besideNccl)))
        : Optional.empty();
  }

  /**
   * Returns the announced GPU, which may be absent, as a rank of communicators.
   *
   * @param besideNccl creates the communicators of hosts over which ranks agree
   */
  static GpuRanks ranks(SparkConf conf, PeerAddress own, CommunicatorFactory besideNccl) {
    return new GpuRanks(
        new GpuRanks.Options(
            own.executorId() + "@" + own.incarnation(),
            own.pathEnd(),
            PathSettings.rules(conf),
            libraries(conf),
            WeftSettings.COLLECTIVES_GPU_MEMORY.get(conf),
            besideNccl));
  }

  /** Returns the announced GPU for tasks, or the reason for its absence. */
  static ExecutorGpu forTasks(SparkConf conf, PeerAddress own, ExecutorExchange exchange) {
    return new ExecutorGpu(
        new ExecutorGpu.Options(
            own.executorId(),
            own.gpu(),
            libraries(conf),
            exchange,
            WeftSettings.GPU_MEMORY.get(conf),
            WeftSettings.GPU_EXCHANGE_MEMORY.get(conf),
            WeftSettings.GPU_PINNED_MEMORY.get(conf),
            WeftSettings.TRANSFERS_DEADLINE.get(conf)));
  }

  /** Returns the settings' search path of NCCL. */
  private static ProbeOptions libraries(SparkConf conf) {
    String named = WeftSettings.NCCL_LIBRARY.get(conf);
    ProbeOptions defaults = ProbeOptions.defaults();
    return named.isEmpty() ? defaults : defaults.withNcclLibrary(Path.of(named));
  }

  private static String given(PluginContext context) {
    ResourceInformation gpus = context.resources().get(RESOURCE);
    return gpus == null || gpus.addresses().length == 0 ? "" : gpus.addresses()[0];
  }
}
