package io.weft.spark.rapids;

import com.nvidia.spark.rapids.RapidsConf;
import io.weft.spark.rapids.data.LaneParts;
import java.time.Duration;
import org.apache.spark.SparkConf;

/**
 * The settings and resources of a transport.
 *
 * @param version of Weft
 * @param executor id of this executor, 0 or more
 * @param conf Spark's settings, for the connections
 * @param rapids settings of spark-rapids, for sizes and counts
 * @param lanes make the communicators
 * @param memory gives the bounce buffers
 * @param deadline of a request without progress, of a connection, and of one block
 * @param idle a communicator is given up after this time without use
 */
record TransportSettings(
    String version,
    long executor,
    SparkConf conf,
    RapidsConf rapids,
    LaneParts lanes,
    BounceMemory memory,
    Duration deadline,
    Duration idle) {}
