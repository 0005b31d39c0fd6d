package io.weft.spark.transfers;

import java.io.Serializable;
import java.util.List;

/**
 * How a round of a clique's meeting stands.
 *
 * @param id of the communicator to be, encoded; confidential
 * @param messages of both ends; null until both have come
 * @param failure why there will be no communicator; null while there may be one
 */
public record CliqueAnswer(String id, List<byte[]> messages, String failure)
    implements Serializable {}
