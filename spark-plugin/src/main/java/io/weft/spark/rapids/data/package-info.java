/**
 * How the data of spark-rapids' tables moves: a lane for each connection, with a communicator of
 * two ranks over NCCL or the hosts, made in a meeting over the connection itself.
 *
 * <p>A lane has a thread of its own, "weft-rapids-data-…", which ends when it has had nothing to do
 * for a while. It owns its communicator.
 */
package io.weft.spark.rapids.data;
