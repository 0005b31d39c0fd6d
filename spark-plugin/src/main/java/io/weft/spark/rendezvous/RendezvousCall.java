package io.weft.spark.rendezvous;

import java.io.Serializable;

/**
 * A request of one member to the rendezvous of its group. Repeating a call changes nothing.
 *
 * @param key the group
 * @param ticket identifies this visit of the member; a new visit to the same group takes a new
 *     ticket
 * @param rank of the member
 * @param nranks the number of members
 * @param name of the member, for messages to the others
 * @param round the round that this call is about, or {@link #JOIN} or {@link #LEAVE}
 * @param message what the member brings to the round; null when an earlier call brought it
 * @param failure why the member gives up, as the rest of a sentence; null while it goes on
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
public record RendezvousCall<K extends RendezvousKey>(
    K key,
    String ticket,
    int rank,
    int nranks,
    String name,
    String round,
    byte[] message,
    String failure)
    implements Serializable {
  /** Joins the rendezvous and brings no message. */
  public static final String JOIN = "";

  /** Withdraws from the rendezvous. The others may still fetch rounds that are complete. */
  public static final String LEAVE = "-";

  /** The same call without the message, which the driver already has. */
  public RendezvousCall<K> withoutMessage() {
    return new RendezvousCall<>(key, ticket, rank, nranks, name, round, null, failure);
  }
}
