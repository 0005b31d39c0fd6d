package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Operation.Signature;
import java.util.List;

/** The failure when two ranks run different operations at the same time. */
final class SignatureMismatch {
  private SignatureMismatch() {}

  static CollectiveException between(
      int rank, Signature mine, long sequence, int other, Signature theirs, long theirSequence) {
    return new CollectiveException(
        CollectiveException.Kind.MISMATCH,
        List.of(Math.min(rank, other), Math.max(rank, other)),
        "rank "
            + rank
            + " runs "
            + describe(mine, sequence)
            + " but rank "
            + other
            + " runs "
            + describe(theirs, theirSequence)
            + "; all ranks must run the same collectives in the same order");
  }

  private static String describe(Signature signature, long sequence) {
    return signature.isCollective()
        ? signature + " as collective #" + sequence
        : signature.toString();
  }
}
