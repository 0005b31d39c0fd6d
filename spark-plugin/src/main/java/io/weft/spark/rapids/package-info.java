/**
 * Weft as the shuffle transport of spark-rapids: its manager and catalog stay in place and keep
 * tables on the GPU, and {@link io.weft.spark.rapids.WeftRapidsTransport} moves them between
 * executors, by NCCL or through the hosts.
 *
 * <p>Only {@link io.weft.spark.rapids.RapidsRole} is loaded where spark-rapids is not there. The
 * classes that implement or use spark-rapids' own compile against stubs, which are in no jar.
 *
 * <p>Threads: "weft-rapids-events" runs all callbacks and holds the state of all connections,
 * "weft-rapids-throttle" asks for tables as the budget allows, "weft-rapids-data-…" moves blocks,
 * and "weft-rapids-client-…", "-copy", "-server" and "-sends" are those that spark-rapids' client
 * and server are given. The transport owns all of them, its bounce buffers and its connections, and
 * ends them when it is closed.
 */
package io.weft.spark.rapids;
