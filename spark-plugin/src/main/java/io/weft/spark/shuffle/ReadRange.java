package io.weft.spark.shuffle;

/**
 * Which part of a shuffle a reduce task reads.
 *
 * @param shuffleId which shuffle
 * @param startMapIndex first map output
 * @param endMapIndex one past the last, or {@code Integer.MAX_VALUE} for all
 * @param startPartition first partition
 * @param endPartition one past the last
 */
public record ReadRange(
    int shuffleId, int startMapIndex, int endMapIndex, int startPartition, int endPartition) {}
