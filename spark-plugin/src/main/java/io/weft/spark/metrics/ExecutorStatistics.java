package io.weft.spark.metrics;

import io.weft.crosshost.TransferStatistics;
import io.weft.exchange.ExchangeStatistics;
import io.weft.spark.collectives.CollectiveStatistics;

/**
 * All that an executor counts, at one moment. Immutable.
 *
 * @param exchange of blocks
 * @param collectives of barrier tasks
 * @param transfers with other executors
 */
public record ExecutorStatistics(
    ExchangeStatistics exchange, CollectiveStatistics collectives, TransferStatistics transfers) {}
