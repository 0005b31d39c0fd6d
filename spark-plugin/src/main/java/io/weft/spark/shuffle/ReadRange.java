package io.weft.spark.shuffle;

/**
 * The part of a shuffle that a reduce task reads.
 *
 * @param shuffleId Spark's id of the shuffle
 * @param startMapIndex first map output
 * @param endMapIndex one past the last, or {@code Integer.MAX_VALUE} for all
 * @param startPartition first partition
 * @param endPartition one past the last
 */
public record ReadRange(
    int shuffleId, int startMapIndex, int endMapIndex, int startPartition, int endPartition) {}
