package io.weft.exchange;

import io.weft.peer.TransportMode;
import java.time.Duration;
import java.util.Objects;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;

/**
 * The network options of an executor's exchange.
 *
 * @param host name or address that peers connect to
 * @param bindHost address to bind to
 * @param port to listen on, or 0 for any port
 * @param cores that this executor may use, for the number of network threads; 0 for all cores
 * @param mode path for blocks of other executors
 * @param requestBytes about the bytes of one request to a peer, at least 1
 * @param maxBytesInFlight limit of a reader for bytes requested and not yet used, at least {@code
 *     requestBytes}; a larger chunk is fetched alone
 * @param maxExecutorBytesInFlight the same limit for all readers, at least 1; a reader without an
 *     outstanding request may exceed it by one request
 * @param fetchTimeout a request without progress for this time fails
 * @param conf Spark's configuration; the transport settings are those of its shuffle module
 * @param security authentication and encryption of connections
 */
public record NetworkOptions(
    String host,
    String bindHost,
    int port,
    int cores,
    TransportMode mode,
    long requestBytes,
    long maxBytesInFlight,
    long maxExecutorBytesInFlight,
    Duration fetchTimeout,
    SparkConf conf,
    SecurityManager security) {
  public NetworkOptions {
    Objects.requireNonNull(host, "host");
    Objects.requireNonNull(mode, "mode");
    Objects.requireNonNull(conf, "conf");
    Objects.requireNonNull(security, "security");
    if (requestBytes < 1 || maxBytesInFlight < requestBytes) {
      throw new IllegalArgumentException(
          "requestBytes " + requestBytes + ", maxBytesInFlight " + maxBytesInFlight);
    }
    if (maxExecutorBytesInFlight < 1) {
      throw new IllegalArgumentException("maxExecutorBytesInFlight " + maxExecutorBytesInFlight);
    }
    if (fetchTimeout.isNegative() || fetchTimeout.isZero()) {
      throw new IllegalArgumentException("fetchTimeout " + fetchTimeout + " is not positive");
    }
  }
}
