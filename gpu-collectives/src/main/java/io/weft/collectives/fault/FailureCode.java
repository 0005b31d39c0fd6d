package io.weft.collectives.fault;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A failure as bytes, so that other ranks can tell it as their own. Stateless.
 *
 * <pre>
 *   byte kind (index into its name list) | byte ranks | int each rank | UTF-8 message
 * </pre>
 */
public final class FailureCode {
  private static final int MOST_RANKS = 64;
  private static final List<CollectiveException.Kind> KINDS =
      List.of(CollectiveException.Kind.values());

  private FailureCode() {}

  /** Cuts ranks and message to what fits. */
  public static byte[] encode(CollectiveException failure, int mostBytes) {
    List<Integer> ranks = failure.ranks().subList(0, Math.min(MOST_RANKS, failure.ranks().size()));
    byte[] message = String.valueOf(failure.getMessage()).getBytes(StandardCharsets.UTF_8);
    int room = mostBytes - 2 - 4 * ranks.size();
    byte[] text = Arrays.copyOf(message, Math.min(message.length, room));
    ByteBuffer out = ByteBuffer.allocate(2 + 4 * ranks.size() + text.length);
    out.put((byte) KINDS.indexOf(failure.kind())).put((byte) ranks.size());
    ranks.forEach(out::putInt);
    return out.put(text).array();
  }

  /** The failure that {@link #encode} was given, but for what it cut. */
  public static CollectiveException decode(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    CollectiveException.Kind kind = KINDS.get(in.get());
    int count = in.get();
    List<Integer> ranks = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ranks.add(in.getInt());
    }
    String message = StandardCharsets.UTF_8.decode(in).toString();
    return new CollectiveException(kind, ranks, message);
  }
}
