package io.weft.spark.metrics;

import io.weft.crosshost.TransferStatistics;
import io.weft.exchange.ExchangeStatistics;
import io.weft.spark.collectives.CollectiveStatistics;

/**
 * All statistics of an executor at one time. Immutable.
 *
 * @param exchange statistics of blocks
 * @param collectives statistics of barrier tasks
 * @param transfers statistics of transfers with other executors
 */
public record ExecutorStatistics(
    ExchangeStatistics exchange, CollectiveStatistics collectives, TransferStatistics transfers) {}
