package io.weft.spark.rapids.data;

import io.weft.collectives.UniqueId;
import io.weft.collectives.buffer.TypedBuffer;
import java.util.function.Consumer;

/**
 * The move of one block through a data lane.
 *
 * @param epoch of the lane
 * @param communicatorId id of the epoch's communicator
 * @param buffer in GPU memory, not empty
 * @param sends whether this end sends
 * @param ended run once when the lane no longer touches the buffer, with the failure or null; runs
 *     on the lane's thread or the thread that closes the lane
 */
public record Passage(
    long epoch,
    UniqueId communicatorId,
    TypedBuffer buffer,
    boolean sends,
    Consumer<Throwable> ended) {}
