/**
 * Weft as the shuffle transport of spark-rapids. The manager and catalog of spark-rapids keep the
 * tables on the GPU. Start with {@link io.weft.spark.rapids.RapidsRole}, which decides whether Weft
 * is the transport, and with {@link io.weft.spark.rapids.WeftRapidsTransport}, which moves tables
 * between executors, by NCCL or through the hosts.
 *
 * <p>Without spark-rapids only {@code RapidsRole} is loaded. The other classes compile against
 * stubs of spark-rapids, which are in no jar.
 *
 * <p>A connection has a control channel over Spark's network transport, and a data lane with a
 * communicator of two ranks. The thread "weft-rapids-events" runs all callbacks and owns the state
 * of all connections. "weft-rapids-throttle" requests tables as the budget allows.
 * "weft-rapids-data-…" moves blocks. "weft-rapids-client-…", "-copy", "-server" and "-sends" run
 * spark-rapids' client and server. The transport owns the threads, its bounce buffers and its
 * connections, and ends them when it is closed.
 */
package io.weft.spark.rapids;
