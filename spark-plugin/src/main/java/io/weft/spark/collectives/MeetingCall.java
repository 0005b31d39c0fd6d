package io.weft.spark.collectives;

import java.io.Serializable;

/**
 * What a task asks of the meeting of its stage attempt. Asking the same again changes nothing.
 *
 * @param key which meeting
 * @param rank of the task, which is its partition
 * @param nranks how many tasks the stage has
 * @param name what the task is called, for others' messages
 * @param round what this is about
 * @param message what the task brings to the round; null when it has brought it before
 * @param failure why the task cannot go on, as the rest of a sentence; null while it can
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
public record MeetingCall(
    MeetingKey key, int rank, int nranks, String name, String round, byte[] message, String failure)
    implements Serializable {
  /** The same question without the message, which the driver has. */
  MeetingCall again() {
    return new MeetingCall(key, rank, nranks, name, round, null, failure);
  }
}
