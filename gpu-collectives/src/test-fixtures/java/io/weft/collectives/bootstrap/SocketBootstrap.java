package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.FailureCodec;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

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

  /** The end of a rank other than 0 of {@link SocketBootstrap}. For one thread. */
  static final class MemberBootstrap implements Bootstrap {
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
        if (!DeadlinePoller.await(this::isAnswered, deadline)) {
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

  /** Encodes and decodes the messages of {@link SocketBootstrap}. Stateless. */
  static final class RoundMessages {
    static final int MAX_BYTES = 1 << 20;
    private static final int MAX_FAILURE_BYTES = 4096;

    private RoundMessages() {}

    /** Encodes a rank's message for a round. */
    static byte[] encode(String round, byte[] content) throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      out.writeUTF(round);
      out.write(content);
      return bytes.toByteArray();
    }

    /** The round that a rank's message belongs to. */
    static String round(byte[] message) throws IOException {
      return new DataInputStream(new ByteArrayInputStream(message)).readUTF();
    }

    /** The content of a rank's message. */
    static byte[] content(byte[] message) throws IOException {
      DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
      String unused = in.readUTF();
      return in.readAllBytes();
    }

    static byte[] all(List<byte[]> contents) throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      out.writeByte(0);
      for (byte[] content : contents) {
        out.writeInt(content.length);
        out.write(content);
      }
      return bytes.toByteArray();
    }

    static byte[] failure(CollectiveException cause) throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      bytes.write(1);
      bytes.write(FailureCodec.encode(cause, MAX_FAILURE_BYTES));
      return bytes.toByteArray();
    }

    /**
     * Decodes the messages of all ranks.
     *
     * @throws CollectiveException when rank 0 sent a failure instead
     */
    static List<byte[]> decode(byte[] message, int nranks) throws IOException {
      DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
      if (in.readByte() != 0) {
        throw FailureCodec.decode(in.readAllBytes());
      }
      List<byte[]> contents = new ArrayList<>();
      for (int rank = 0; rank < nranks; rank++) {
        contents.add(content(in, rank));
      }
      return contents;
    }

    private static byte[] content(DataInputStream in, int rank) throws IOException {
      int length = in.readInt();
      if (length < 0 || length > in.available()) {
        throw new IOException(
            "the message of rank %d has %d bytes, but only %d arrived"
                .formatted(rank, length, in.available()));
      }
      return in.readNBytes(length);
    }

    static void check(byte[] content) {
      if (content.length > MAX_BYTES) {
        throw new IllegalArgumentException(
            "a message of " + content.length + " bytes; at most " + MAX_BYTES + " are allowed");
      }
    }
  }

  /** The end of rank 0 of {@link SocketBootstrap}. For one thread. */
  static final class RootBootstrap implements Bootstrap {
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
          Deadline early = DeadlinePoller.beforeOthers(deadline);
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
      if (!DeadlinePoller.await(() -> collect(round), deadline)) {
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
            "rank "
                + rank
                + " ended before round "
                + round
                + " of the bootstrap: "
                + e.getMessage(),
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
          DeadlinePoller.await(
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
}
