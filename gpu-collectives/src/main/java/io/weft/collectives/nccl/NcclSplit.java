package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;

/**
 * Splits a communicator: first the host's, so that no rank continues alone in NCCL, then NCCL's
 * own. Runs on the thread whose turn it is on the communicator.
 */
final class NcclSplit {
  private final NcclCommunicator whole;
  private final CommunicatorFactory hosts;
  private final Deadline deadline;

  NcclSplit(NcclCommunicator whole, CommunicatorFactory hosts, Deadline deadline) {
    this.whole = whole;
    this.hosts = hosts;
    this.deadline = deadline;
  }

  Optional<DeviceCommunicator> run(int color, int key) {
    BootstrapRounds rounds = new BootstrapRounds(new CommunicatorBootstrap(whole.host()), deadline);
    List<SplitRequest> all =
        rounds.exchange("ncclsplit", () -> SplitRequest.of(color, key).encode()).stream()
            .map(SplitRequest::decode)
            .toList();
    AtomicReference<NcclCommunicator> part = new AtomicReference<>();
    List<NcclComm> split = new ArrayList<>();
    try {
      rounds.barrier(
          "ncclsplitopened",
          () -> {
            if (color != DeviceCommunicator.NO_COLOR) {
              part.set(open(all, SplitRequest.members(all, color)));
            }
          });
      whole.splitBoth(split, color, key, deadline);
      if (part.get() != null) {
        part.get().connect(split.get(0), split.get(1), deadline);
      }
      return Optional.ofNullable(part.get());
    } catch (RuntimeException | Error e) {
      giveUp(part.get(), split, e);
      throw e;
    }
  }

  private NcclCommunicator open(List<SplitRequest> all, List<Integer> members) {
    SplitRequest first = all.get(members.get(0));
    Bootstrap bootstrap = new SubgroupBootstrap(whole.host(), members, first.id());
    HostCommunicatorPair pair =
        HostCommunicatorPair.create(hosts, bootstrap, whole.options(), first.pairsId());
    try {
      return new NcclCommunicator(bootstrap, whole.options(), whole.nccl(), hosts, pair);
    } catch (RuntimeException | Error e) {
      pair.close();
      throw e;
    }
  }

  /** Ends the parts that no communicator has taken, too. A second abort does nothing. */
  private void giveUp(NcclCommunicator part, List<NcclComm> split, Throwable cause) {
    if (part != null) {
      NcclCommunicators.giveUp(part, cause);
    }
    whole.nccl().device().use();
    split.forEach(NcclComm::abort);
  }

  /**
   * A rendezvous of some ranks of a communicator by sends and receives on it, so several parts can
   * meet at the same time. The first rank gathers the messages and sends them to the others. The
   * length and the hash of the round precede each message. Does not own the communicator.
   *
   * @param host the communicator of all ranks
   * @param members its ranks in the order of the part, including this one
   */
  record SubgroupBootstrap(Communicator host, List<Integer> members, UniqueId id)
      implements Bootstrap {
    @Override
    public int rank() {
      return members.indexOf(host.rank());
    }

    @Override
    public int nranks() {
      return members.size();
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      int first = members.get(0);
      if (host.rank() != first) {
        send(round, mine, first);
        return unpack(receive(round, first));
      }
      List<byte[]> all = new ArrayList<>(List.of(mine));
      for (int member : members.subList(1, members.size())) {
        all.add(receive(round, member));
      }
      for (int member : members.subList(1, members.size())) {
        send(round, pack(all), member);
      }
      return all;
    }

    private static byte[] pack(List<byte[]> messages) {
      ByteBuffer out =
          ByteBuffer.allocate(
              messages.stream().mapToInt(message -> Integer.BYTES + message.length).sum());
      messages.forEach(message -> out.putInt(message.length).put(message));
      return out.array();
    }

    private List<byte[]> unpack(byte[] packed) {
      ByteBuffer in = ByteBuffer.wrap(packed);
      List<byte[]> messages = new ArrayList<>();
      for (int rank = 0; rank < nranks(); rank++) {
        byte[] message = new byte[in.getInt()];
        in.get(message);
        messages.add(message);
      }
      return messages;
    }

    private static TypedBuffer buffer(DataType type, int count) {
      return TypedBuffer.wrap(ByteBuffer.allocateDirect(count * type.bytes()), type);
    }

    private void send(String round, byte[] message, int peer) {
      TypedBuffer head = buffer(DataType.INT64, 2);
      TypedBuffer body = buffer(DataType.INT8, message.length);
      try {
        Memory.putLong(head.address(), message.length);
        Memory.putLong(head.address() + Long.BYTES, round.hashCode());
        host.send(head, peer);
        Memory.copyFrom(message, Memory.BYTE_ARRAY, body.address(), message.length);
        host.send(body, peer);
      } finally {
        Reference.reachabilityFence(head);
        Reference.reachabilityFence(body);
      }
    }

    private byte[] receive(String round, int peer) {
      TypedBuffer head = buffer(DataType.INT64, 2);
      try {
        host.receive(head, peer);
        if (Memory.getLong(head.address() + Long.BYTES) != round.hashCode()) {
          throw new CollectiveException(
              Kind.MISMATCH,
              List.of(Math.min(peer, host.rank()), Math.max(peer, host.rank())),
              "rank "
                  + host.rank()
                  + " is in round "
                  + round
                  + " but rank "
                  + peer
                  + " in another");
        }
        return body((int) Memory.getLong(head.address()), peer);
      } finally {
        Reference.reachabilityFence(head);
      }
    }

    private byte[] body(int length, int peer) {
      TypedBuffer body = buffer(DataType.INT8, length);
      try {
        host.receive(body, peer);
        byte[] message = new byte[length];
        Memory.copyTo(body.address(), message, Memory.BYTE_ARRAY, length);
        return message;
      } finally {
        Reference.reachabilityFence(body);
      }
    }

    /** The communicator stays open. */
    @Override
    public void close() {
      // Nothing was opened.
    }
  }

  /**
   * The message of each rank in a split of a communicator.
   *
   * <pre> int color | int key | int length of an id | id | id, ASCII
   * </pre>
   *
   * @param id of the host's communicator for collectives, if this rank is the first of its part
   * @param pairsId of that for pairs
   */
  record SplitRequest(int color, int key, UniqueId id, UniqueId pairsId) {
    static SplitRequest of(int color, int key) {
      return new SplitRequest(color, key, UniqueId.create(), UniqueId.create());
    }

    byte[] encode() {
      byte[] first = id.encode().getBytes(StandardCharsets.US_ASCII);
      byte[] second = pairsId.encode().getBytes(StandardCharsets.US_ASCII);
      return ByteBuffer.allocate(3 * Integer.BYTES + first.length + second.length)
          .putInt(color)
          .putInt(key)
          .putInt(first.length)
          .put(first)
          .put(second)
          .array();
    }

    static SplitRequest decode(byte[] message) {
      ByteBuffer in = ByteBuffer.wrap(message);
      int color = in.getInt();
      int key = in.getInt();
      byte[] first = new byte[in.getInt()];
      in.get(first);
      byte[] second = new byte[in.remaining()];
      in.get(second);
      return new SplitRequest(color, key, decodeId(first), decodeId(second));
    }

    private static UniqueId decodeId(byte[] ascii) {
      return UniqueId.decode(new String(ascii, StandardCharsets.US_ASCII));
    }

    /** The ranks of a color, ordered by key, then rank. */
    static List<Integer> members(List<SplitRequest> all, int color) {
      return IntStream.range(0, all.size())
          .filter(rank -> all.get(rank).color() == color)
          .boxed()
          .sorted(Comparator.comparingInt(rank -> all.get(rank).key()))
          .toList();
    }
  }
}
