package io.weft.spark.transfers;

import java.io.Serializable;

/**
 * An executor that is gone for good: Spark never uses its id again.
 *
 * @param executorId Spark's
 * @param reason in words
 */
public record Departure(String executorId, String reason) implements Serializable {}
