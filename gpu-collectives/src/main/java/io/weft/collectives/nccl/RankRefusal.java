package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Supplier;

/** Reports what one rank cannot do, so that all ranks give up. Stateless. */
final class RankRefusal {
  private RankRefusal() {}

  /**
   * Runs a rank's part.
   *
   * @param what names the action for the message
   * @throws CollectiveException of kind INVALID, naming the rank, if the part fails
   */
  static <T> T named(int rank, String what, Supplier<T> part) {
    try {
      return part.get();
    } catch (IllegalArgumentException
        | IllegalStateException
        | UncheckedIOException
        | UnavailableLibraryException
        | CudaException e) {
      throw of(List.of(rank), "rank " + rank + " cannot " + what + ": " + e.getMessage(), e);
    }
  }

  static CollectiveException of(List<Integer> ranks, String message, Throwable cause) {
    return new CollectiveException(Kind.INVALID, ranks, message, cause);
  }
}
