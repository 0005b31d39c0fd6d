package io.weft.spark.collectives;

import java.io.Serializable;
import java.util.List;

/**
 * How a round of a meeting stands.
 *
 * @param id of the communicator to be, encoded; confidential
 * @param names what the tasks are called, by rank; empty text for one that is not known yet
 * @param messages of all ranks; null until all have come
 * @param missing the ranks that have not come to the round
 * @param failure why there will be no communicator; null while there may be one
 * @param culprits the ranks at fault
 */
public record MeetingAnswer(
    String id,
    List<String> names,
    List<byte[]> messages,
    List<Integer> missing,
    String failure,
    List<Integer> culprits)
    implements Serializable {}
