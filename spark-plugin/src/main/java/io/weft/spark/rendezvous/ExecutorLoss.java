package io.weft.spark.rendezvous;

import java.io.Serializable;

/**
 * The loss of an executor. Spark never uses its id again.
 *
 * @param executorId Spark's executor id
 * @param reason as Spark reported it
 */
public record ExecutorLoss(String executorId, String reason) implements Serializable {}
