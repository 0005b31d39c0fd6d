package io.weft.crosshost;

import io.weft.collectives.clique.CliqueMember;
import java.io.IOException;
import java.util.List;

/** Which devices there are, and which life of its executor each belongs to. Thread-safe. */
public interface Membership {
  /** The id of this executor. */
  String executor();

  /** This executor's devices; none on an executor that only takes part as a no-op. */
  List<DeviceId> devices();

  /**
   * The device in the present life of its executor. May ask others and take a while.
   *
   * @throws IOException when there is no such executor, or nobody answers
   */
  CliqueMember member(DeviceId device) throws IOException;
}
