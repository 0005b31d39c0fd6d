/**
 * An executor's access to the shuffle: the facade over memory, map outputs and fetching.
 *
 * <p>Start with {@code ExecutorExchange}, which is opened with {@code ExchangeOptions}. The
 * executor's plugin opens one instance per JVM and closes it, which frees all resources of the
 * packages below. {@code ExchangeStatistics} is a snapshot of it. Thread-safe.
 */
package io.weft.shuffle;
