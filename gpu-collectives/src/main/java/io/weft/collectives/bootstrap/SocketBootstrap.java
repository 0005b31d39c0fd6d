package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.net.Listener;
import java.io.IOException;

/**
 * A bootstrap over a socket of rank 0, whose address is in the unique id. In every round each rank
 * sends its message to rank 0, which sends all of them, or the failure, to every rank.
 *
 * <pre>
 *   to rank 0:    UTF round | bytes of the message
 *   from rank 0:  byte 0 | per rank: int length, bytes       or   byte 1 | failure
 * </pre>
 *
 * <p>A connection that does not know the secret in the id is refused. The messages are not
 * encrypted.
 */
public final class SocketBootstrap {
  private SocketBootstrap() {}

  /**
   * Opens the end of rank 0 and makes the unique id; the other ranks need it to {@link #join}.
   *
   * @param host an address of this machine that all ranks can reach; the system chooses the port
   * @param nranks 1 or more
   */
  public static Bootstrap listen(String host, int nranks) throws IOException {
    Listener listener = Listener.open(host);
    try {
      return new RootBootstrap(UniqueId.create(listener.address()), nranks, listener);
    } catch (IOException | RuntimeException e) {
      listener.close();
      throw e;
    }
  }

  /**
   * Opens the end of another rank. It connects in its first round.
   *
   * @param id as rank 0 made it
   * @param rank 1 to nranks - 1, each once
   * @throws IllegalArgumentException when the id has no address
   */
  public static Bootstrap join(UniqueId id, int rank, int nranks) {
    if (rank < 1 || rank >= nranks) {
      throw new IllegalArgumentException(
          "rank " + rank + " cannot join: only ranks 1 to " + (nranks - 1) + " can");
    }
    return new MemberBootstrap(id, rank, nranks);
  }
}
