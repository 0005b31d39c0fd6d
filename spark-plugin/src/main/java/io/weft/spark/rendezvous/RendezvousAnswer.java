package io.weft.spark.rendezvous;

import java.io.Serializable;
import java.util.List;

/**
 * The state of one round of a rendezvous. A round may be complete in a rendezvous that failed
 * later: then both {@code messages} and {@code failure} are set, and the caller decides.
 *
 * @param id of the gathering, encoded; confidential; the communicator of a pair of executors has it
 *     too
 * @param names of the members, by rank; an empty text where the name is not known yet
 * @param messages of all members, by rank; null until the round is complete
 * @param missing the ranks that have brought no message to the round
 * @param failure why the members get no communicator; null while the rendezvous has not failed
 * @param culprits the ranks that caused the failure, where they are known
 */
public record RendezvousAnswer(
    String id,
    List<String> names,
    List<byte[]> messages,
    List<Integer> missing,
    String failure,
    List<Integer> culprits)
    implements Serializable {
  /** Refuses a member without a rendezvous; a null failure acknowledges a withdrawal. */
  static RendezvousAnswer withoutRendezvous(String failure, List<Integer> culprits) {
    return new RendezvousAnswer("", List.of(), null, List.of(), failure, culprits);
  }
}
