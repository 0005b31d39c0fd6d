/**
 * The data path of spark-rapids' tables: a lane for each connection, with a communicator of two
 * ranks over NCCL or the hosts. Its bootstrap uses the connection itself.
 *
 * <p>A lane has its own thread "weft-rapids-data-…", which ends after an idle time. The lane owns
 * its communicator.
 */
package io.weft.spark.rapids.data;
