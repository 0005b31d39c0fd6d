package io.weft.spark.transfers;

import java.io.Serializable;
import java.util.List;

/**
 * What one end of a clique asks of its meeting. Asking the same again changes nothing.
 *
 * @param ticket a random text of this end's coming; coming again takes another one
 * @param clique both members, by rank
 * @param rank of this end
 * @param round what this is about; {@link #JOIN} or {@link #LEAVE} where it is no round
 * @param message what this end brings to the round; null when it has brought it before
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
public record CliqueCall(
    String ticket, List<CliqueEnd> clique, int rank, String round, byte[] message)
    implements Serializable {
  /** Comes, without bringing anything. */
  public static final String JOIN = "";

  /** Goes: the other end may still fetch what is there. */
  public static final String LEAVE = "-";

  public CliqueCall {
    clique = List.copyOf(clique);
    if (clique.size() != 2 || rank < 0 || rank > 1) {
      throw new IllegalArgumentException("rank " + rank + " of the clique " + clique);
    }
  }

  /** The same question without the message, which the driver has. */
  CliqueCall again() {
    return new CliqueCall(ticket, clique, rank, round, null);
  }
}
