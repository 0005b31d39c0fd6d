package io.weft.wire;

import io.weft.catalog.BlockKey;

/**
 * A range of partitions of one map output.
 *
 * @param key of the map output
 * @param startPartition first partition
 * @param endPartition one past the last
 */
public record BlockRange(BlockKey key, int startPartition, int endPartition) {}
