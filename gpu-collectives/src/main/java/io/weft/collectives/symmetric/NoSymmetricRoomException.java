package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import java.util.List;

/**
 * A rank has no room for its part of a symmetric segment. All ranks throw it together, and the
 * communicator stays usable.
 */
public final class NoSymmetricRoomException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  NoSymmetricRoomException(int rank, String reason) {
    super(Kind.IO, List.of(rank), "rank " + rank + ": " + reason);
  }
}
