package io.weft.spark.rapids.data;

import io.weft.collectives.UniqueId;
import io.weft.collectives.buffer.TypedBuffer;
import java.util.function.Consumer;

/**
 * One block on its way through a data lane.
 *
 * @param epoch of the lane that it belongs to
 * @param meeting of the epoch
 * @param buffer in the GPU's memory, not empty
 * @param sends whether this end sends
 * @param ended run once, on the lane's thread or the one that closes the lane, when the lane no
 *     longer touches the buffer; with the failure, or null
 */
public record Passage(
    long epoch, UniqueId meeting, TypedBuffer buffer, boolean sends, Consumer<Throwable> ended) {}
