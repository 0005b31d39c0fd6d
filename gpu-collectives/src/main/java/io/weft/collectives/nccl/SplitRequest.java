package io.weft.collectives.nccl;

import io.weft.collectives.UniqueId;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

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
