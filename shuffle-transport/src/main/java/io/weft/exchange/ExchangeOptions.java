package io.weft.exchange;

import io.weft.memory.SettingNames;
import java.util.Objects;

/**
 * The options of an executor's exchange.
 *
 * @param applicationKey name of the application's folder; the same on all its executors and unique
 *     among applications
 * @param executorId Spark's executor id
 * @param version of Weft, announced to peers
 * @param memory budgets and folders
 * @param network addresses, limits and security
 * @param traffic checksums, compression and flow control
 * @param names the names of these options in messages
 */
public record ExchangeOptions(
    String applicationKey,
    String executorId,
    String version,
    MemoryOptions memory,
    NetworkOptions network,
    TrafficOptions traffic,
    SettingNames names) {
  public ExchangeOptions {
    Objects.requireNonNull(applicationKey, "applicationKey");
    Objects.requireNonNull(executorId, "executorId");
    Objects.requireNonNull(version, "version");
    Objects.requireNonNull(memory, "memory");
    Objects.requireNonNull(network, "network");
    Objects.requireNonNull(traffic, "traffic");
    Objects.requireNonNull(names, "names");
  }

  /** Options under their own names. */
  public ExchangeOptions(
      String applicationKey,
      String executorId,
      String version,
      MemoryOptions memory,
      NetworkOptions network,
      TrafficOptions traffic) {
    this(applicationKey, executorId, version, memory, network, traffic, SettingNames.OWN);
  }
}
