package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.UniqueId;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A rendezvous of some ranks of a communicator by sends and receives on it, so several parts can
 * meet at the same time. The first rank gathers the messages and sends them to the others. The
 * length and the hash of the round precede each message. Does not own the communicator.
 *
 * @param host the communicator of all ranks
 * @param members its ranks in the order of the part, including this one
 */
record PartBootstrap(Communicator host, List<Integer> members, UniqueId id) implements Bootstrap {
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
            "rank " + host.rank() + " is in round " + round + " but rank " + peer + " in another");
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
