package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.net.FrameChannel;
import io.weft.collectives.net.Greeting;
import io.weft.collectives.net.Listener;
import io.weft.collectives.net.Patience;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The end of rank 0 of {@link SocketBootstrap}. For one thread. */
final class RootBootstrap implements Bootstrap {
  private static final int MAX_FRAME_BYTES = RoundMessages.MAX_BYTES + 1024;

  private final UniqueId id;
  private final int nranks;
  private final Listener listener;
  private final Map<Integer, FrameChannel> members = new TreeMap<>();

  /** The messages of the current round so far, by rank. */
  private final Map<Integer, byte[]> received = new LinkedHashMap<>();

  RootBootstrap(UniqueId id, int nranks, Listener listener) {
    this.id = id;
    this.nranks = nranks;
    this.listener = listener;
  }

  @Override
  public UniqueId id() {
    return id;
  }

  @Override
  public int rank() {
    return 0;
  }

  @Override
  public int nranks() {
    return nranks;
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    RoundMessages.check(mine);
    try {
      try {
        Deadline early = Patience.beforeOthers(deadline);
        admit(early);
        List<byte[]> all = collect(round, mine, early);
        sendToMembers(RoundMessages.all(all), deadline);
        return all;
      } catch (CollectiveException e) {
        sendToMembers(RoundMessages.failure(e), deadline);
        throw e;
      }
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.IO, List.of(0), "rank 0 cannot continue the bootstrap of " + id + ": " + e, e);
    }
  }

  private void admit(Deadline deadline) throws IOException {
    if (members.size() == nranks - 1) {
      return;
    }
    Map<Greeting, Integer> expected =
        IntStream.range(1, nranks)
            .boxed()
            .collect(
                Collectors.toMap(
                    rank -> new Greeting(rank, 0, Greeting.Purpose.BOOTSTRAP), rank -> rank));
    Map<Greeting, SocketChannel> come = listener.await(id, expected.keySet(), deadline);
    for (Map.Entry<Greeting, SocketChannel> entry : come.entrySet()) {
      members.put(entry.getKey().from(), new FrameChannel(entry.getValue(), MAX_FRAME_BYTES));
    }
    if (members.size() < nranks - 1) {
      List<Integer> absent =
          IntStream.range(1, nranks).filter(rank -> !members.containsKey(rank)).boxed().toList();
      throw new CollectiveException(
          Kind.TIMEOUT,
          absent,
          CollectiveException.name(absent)
              + " did not connect to rank 0 at "
              + listener.address()
              + " within "
              + deadline);
    }
  }

  private List<byte[]> collect(String round, byte[] mine, Deadline deadline) throws IOException {
    received.clear();
    received.put(0, mine);
    if (!Patience.await(() -> collect(round), deadline)) {
      List<Integer> absent =
          members.keySet().stream().filter(rank -> !received.containsKey(rank)).toList();
      throw new CollectiveException(
          Kind.TIMEOUT,
          absent,
          CollectiveException.name(absent)
              + " did not reach round "
              + round
              + " of the bootstrap of "
              + id
              + " within "
              + deadline);
    }
    List<byte[]> all = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      all.add(received.get(rank));
    }
    return all;
  }

  private boolean collect(String round) throws IOException {
    for (Map.Entry<Integer, FrameChannel> member : members.entrySet()) {
      int rank = member.getKey();
      if (!received.containsKey(rank)) {
        Optional<byte[]> message = poll(rank, member.getValue(), round);
        if (message.isPresent()) {
          received.put(rank, content(rank, message.get(), round));
        }
      }
    }
    return received.size() == nranks;
  }

  private static Optional<byte[]> poll(int rank, FrameChannel member, String round) {
    try {
      return member.poll();
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.DEAD,
          List.of(rank),
          "rank " + rank + " ended before round " + round + " of the bootstrap: " + e.getMessage(),
          e);
    }
  }

  private static byte[] content(int rank, byte[] message, String round) throws IOException {
    if (!RoundMessages.round(message).equals(round)) {
      throw new CollectiveException(
          Kind.MISMATCH,
          List.of(0, rank),
          "rank 0 is in round "
              + round
              + " of the bootstrap but rank "
              + rank
              + " is in round "
              + RoundMessages.round(message));
    }
    return RoundMessages.content(message);
  }

  /**
   * Sends a message to all members. Ignores a member that has ended; the next round reports it
   * missing.
   */
  private void sendToMembers(byte[] message, Deadline deadline) throws IOException {
    List<FrameChannel> left = new ArrayList<>(members.values());
    left.forEach(member -> member.send(message));
    boolean unused =
        Patience.await(
            () -> {
              left.removeIf(RootBootstrap::hasFlushed);
              return left.isEmpty();
            },
            deadline);
  }

  private static boolean hasFlushed(FrameChannel member) {
    try {
      return member.flush();
    } catch (IOException e) {
      return true;
    }
  }

  @Override
  public void close() {
    try {
      for (FrameChannel member : members.values()) {
        member.close();
      }
      listener.close();
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.IO, List.of(0), "cannot close the bootstrap of " + id + ": " + e, e);
    }
  }
}
