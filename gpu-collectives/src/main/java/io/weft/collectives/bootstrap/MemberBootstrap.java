package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.net.Connector;
import io.weft.collectives.net.FrameChannel;
import io.weft.collectives.net.Greeting;
import io.weft.collectives.net.Patience;
import io.weft.device.Deadline;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Optional;

/** The end of a rank other than 0 of {@link SocketBootstrap}. For one thread. */
final class MemberBootstrap implements Bootstrap {
  private final UniqueId id;
  private final int rank;
  private final int nranks;
  private final InetSocketAddress root;
  private FrameChannel channel;
  private Optional<byte[]> answer = Optional.empty();

  MemberBootstrap(UniqueId id, int rank, int nranks) {
    this.id = id;
    this.rank = rank;
    this.nranks = nranks;
    this.root =
        id.rootAddress()
            .orElseThrow(() -> new IllegalArgumentException(id + " has no address of the root"));
  }

  @Override
  public UniqueId id() {
    return id;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int nranks() {
    return nranks;
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    RoundMessages.check(mine);
    try {
      if (channel == null) {
        channel = connect(deadline);
      }
      channel.send(RoundMessages.encode(round, mine));
      answer = Optional.empty();
      if (!Patience.await(this::isAnswered, deadline)) {
        throw new CollectiveException(
            Kind.TIMEOUT,
            List.of(0),
            "rank 0 at "
                + root
                + " did not answer rank "
                + rank
                + " in round "
                + round
                + " of the bootstrap within "
                + deadline);
      }
      return RoundMessages.decode(answer.orElseThrow(), nranks);
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.DEAD,
          List.of(0),
          "rank 0 at " + root + " ended before round " + round + " of the bootstrap: " + e,
          e);
    }
  }

  private FrameChannel connect(Deadline deadline) throws IOException {
    Greeting greeting = new Greeting(rank, 0, Greeting.Purpose.BOOTSTRAP);
    Connector connector = Connector.greet(id, greeting, root, deadline);
    try {
      SocketChannel socket = connector.awaitWelcome(deadline);
      long most = (long) nranks * (RoundMessages.MAX_BYTES + 4) + 1;
      return new FrameChannel(socket, (int) Math.min(Integer.MAX_VALUE, most));
    } catch (IOException | RuntimeException e) {
      connector.close();
      throw e;
    }
  }

  private boolean isAnswered() throws IOException {
    boolean unused = channel.flush();
    answer = channel.poll();
    return answer.isPresent();
  }

  @Override
  public void close() {
    if (channel != null) {
      try {
        channel.close();
      } catch (IOException e) {
        throw new CollectiveException(
            Kind.IO, List.of(rank), "cannot close the bootstrap of " + id + ": " + e, e);
      }
    }
  }
}
