package io.weft.exchange;

import io.weft.peer.TransportMode;
import java.time.Duration;
import java.util.Objects;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;

/**
 * How an executor's exchange reaches others and is reached.
 *
 * @param host name or address that peers connect to
 * @param bindHost address to bind to
 * @param port to listen on, or 0 for any
 * @param cores this executor may use, for the number of network threads; 0 for all of the machine
 * @param mode which way blocks of other executors come
 * @param requestBytes asked of a peer at a time, at least 1
 * @param maxBytesInFlight a reader holds at most so many bytes asked for and not yet used, at least
 *     {@code requestBytes}; one chunk larger than that still comes, alone
 * @param maxExecutorBytesInFlight all readers together hold at most so many, at least 1; a reader
 *     without anything under way still asks for something
 * @param fetchTimeout a request that makes no progress for so long fails
 * @param conf Spark's configuration; the transport settings are those of its shuffle module
 * @param security whether peers authenticate and how traffic is encrypted
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
