package io.weft.spark.rapids;

import org.apache.spark.storage.BlockManagerId;

/**
 * The management port of an executor. spark-rapids puts it into the topology of the block manager's
 * id, as "rapids=1234".
 */
record PeerPort(long executor, int port) {
  private static final String PREFIX = "rapids=";

  /**
   * Reads the port from an id.
   *
   * @throws IllegalArgumentException if spark-rapids' server did not create the id
   */
  static PeerPort of(BlockManagerId id) {
    String topology = id.topologyInfo().getOrElse(() -> "");
    if (!topology.regionMatches(true, 0, PREFIX, 0, PREFIX.length())) {
      throw new IllegalArgumentException(
          id + " has no port of a shuffle transport: its executor's server has not started");
    }
    try {
      return new PeerPort(
          executor(id), Integer.parseInt(topology.substring(PREFIX.length()).trim()));
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          id + " has '" + topology + "' where the port of its shuffle transport should be", e);
    }
  }

  /**
   * The executor's number.
   *
   * @throws IllegalArgumentException if its id is not a number, like the driver's
   */
  static long executor(BlockManagerId id) {
    try {
      return Long.parseLong(id.executorId());
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          id + " is not of an executor with a number, as spark-rapids needs it", e);
    }
  }
}
