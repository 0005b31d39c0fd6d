package io.weft.collectives.fault;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Encodes a failure as bytes, so that other ranks can throw it too. Stateless.
 *
 * <pre>
 *   byte kind (index into its name list) | byte ranks | int each rank | UTF-8 message
 * </pre>
 */
public final class FailureCode {
  private static final int MAX_RANKS = 64;
  private static final List<CollectiveException.Kind> KINDS =
      List.of(CollectiveException.Kind.values());

  private FailureCode() {}

  /** Encodes a failure and truncates its ranks and its message to the limit. */
  public static byte[] encode(CollectiveException failure, int maxBytes) {
    List<Integer> ranks = failure.ranks().subList(0, Math.min(MAX_RANKS, failure.ranks().size()));
    byte[] message = String.valueOf(failure.getMessage()).getBytes(StandardCharsets.UTF_8);
    int room = maxBytes - 2 - 4 * ranks.size();
    byte[] text = Arrays.copyOf(message, Math.min(message.length, room));
    ByteBuffer out = ByteBuffer.allocate(2 + 4 * ranks.size() + text.length);
    out.put((byte) KINDS.indexOf(failure.kind())).put((byte) ranks.size());
    ranks.forEach(out::putInt);
    return out.put(text).array();
  }

  /**
   * Decodes a failure that {@link #encode} encoded, without the truncated part. Malformed bytes
   * also give a failure, of kind MISMATCH, because their sender has failed.
   */
  public static CollectiveException decode(byte[] bytes) {
    int count = bytes.length < 2 ? -1 : bytes[1];
    if (count < 0
        || count > MAX_RANKS
        || bytes.length < 2 + 4 * count
        || bytes[0] < 0
        || bytes[0] >= KINDS.size()) {
      return new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          List.of(),
          "another rank failed, but the " + bytes.length + " bytes of its reason are malformed");
    }
    ByteBuffer in = ByteBuffer.wrap(bytes);
    CollectiveException.Kind kind = KINDS.get(bytes[0]);
    List<Integer> ranks = new ArrayList<>();
    in.position(2);
    for (int i = 0; i < count; i++) {
      ranks.add(in.getInt());
    }
    String message = StandardCharsets.UTF_8.decode(in).toString();
    return new CollectiveException(kind, ranks, message);
  }
}
