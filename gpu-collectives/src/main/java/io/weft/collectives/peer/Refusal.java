package io.weft.collectives.peer;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.cuda.CudaException;
import io.weft.device.library.UnavailableLibraryException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Supplier;

/** What one rank cannot do, for all ranks to leave it. Stateless. */
final class Refusal {
  private Refusal() {}

  /**
   * Does a rank's part.
   *
   * @param what that cannot be done where the part fails
   * @throws CollectiveException of kind INVALID, naming the rank, where it fails
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
