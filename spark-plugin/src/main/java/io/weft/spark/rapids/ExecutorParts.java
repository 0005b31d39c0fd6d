package io.weft.spark.rapids;

import com.nvidia.spark.rapids.RapidsConf;
import io.weft.collectives.CommunicatorOptions;
import io.weft.crosshost.GpuResources;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.message.WeftVersion;
import io.weft.spark.rapids.data.LaneParts;
import io.weft.spark.transfers.ExecutorTransfers;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManagerId;

/** Collects the settings and resources of a transport from the executor's plugin. Stateless. */
final class ExecutorParts {
  private ExecutorParts() {}

  /**
   * The settings of a real transport.
   *
   * @throws IllegalStateException if the plugin does not run, or has no GPU
   */
  static TransportSettings settings(BlockManagerId id, RapidsConf rapids) {
    ExecutorTransfers transfers =
        ExecutorTransfers.running()
            .orElseThrow(
                () ->
                    new IllegalStateException(
                        RapidsRole.TRANSPORT
                            + " needs Weft's plugin, which does not run in executor "
                            + id.executorId()
                            + " (yet): set spark.plugins="
                            + RapidsRole.PLUGINS
                            + ", in this order"));
    GpuResources gpu =
        transfers
            .gpuResources()
            .orElseThrow(
                () ->
                    new IllegalStateException(
                        "executor "
                            + id.executorId()
                            + " has no GPU that Weft can use; its log says why. Weft needs"
                            + " net.java.dev.jna:jna on the class path and"
                            + " spark.weft.transport=auto"));
    SparkConf conf = SparkEnv.get().conf();
    return new TransportSettings(
        WeftVersion.current(),
        PeerPort.executor(id),
        conf,
        rapids,
        new LaneParts(gpu.communicators(), gpu.wires(), CommunicatorOptions.DEFAULT),
        BounceMemory.ofCudf(rapids.rmmPool()),
        WeftSettings.TRANSFERS_DEADLINE.get(conf),
        WeftSettings.TRANSFERS_IDLE.get(conf));
  }
}
