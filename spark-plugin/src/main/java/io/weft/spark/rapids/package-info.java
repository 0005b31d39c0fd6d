/**
 * Weft as the shuffle transport of spark-rapids. The manager and catalog of spark-rapids keep the
 * tables on the GPU, and {@link io.weft.spark.rapids.WeftRapidsTransport} moves them between
 * executors, by NCCL or through the hosts.
 *
 * <p>Without spark-rapids only {@link io.weft.spark.rapids.RapidsRole} is loaded. The other classes
 * compile against stubs of spark-rapids, which are in no jar.
 *
 * <p>Threads: "weft-rapids-events" runs all callbacks and owns the state of all connections.
 * "weft-rapids-throttle" requests tables as the budget allows. "weft-rapids-data-…" moves blocks.
 * "weft-rapids-client-…", "-copy", "-server" and "-sends" run spark-rapids' client and server. The
 * transport owns the threads, its bounce buffers and its connections, and ends them when it is
 * closed.
 */
package io.weft.spark.rapids;
