package io.weft.crosshost;

import io.weft.collectives.clique.CliqueMember;
import java.io.IOException;
import java.util.List;

/** The devices of the application and the executor incarnation of each. Thread-safe. */
public interface Membership {
  /** The id of this executor. */
  String executor();

  /** This executor's devices; none on an executor that only passes placements of others. */
  List<DeviceId> devices();

  /**
   * The device in the current incarnation of its executor. May block on requests to others.
   *
   * @throws IOException if there is no such executor, or no answer comes
   */
  CliqueMember member(DeviceId device) throws IOException;
}
