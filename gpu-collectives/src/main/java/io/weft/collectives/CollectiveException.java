package io.weft.collectives;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * A collective failed. The message names the ranks at fault, the operation, and what to check.
 *
 * <p>{@link Kind#INVALID} is found before any data moved and leaves the communicator usable. After
 * every other kind the communicator is broken: each later operation fails with the same cause, on
 * every rank.
 */
public class CollectiveException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The kind of failure, for code that reacts to it. */
  public enum Kind {
    /** The arguments are wrong on this rank; nothing was sent and the communicator still works. */
    INVALID,
    /** A rank did not arrive, or did not make progress, before the deadline. */
    TIMEOUT,
    /** A rank's process has ended or its connection broke. */
    DEAD,
    /** Ranks disagree about their common operation. */
    MISMATCH,
    /** A rank gave up on purpose or was interrupted. */
    ABORTED,
    /** The communicator was closed, here or by a rank that is still needed. */
    CLOSED,
    /** A file, a mapping or a socket failed. */
    IO
  }

  private final Kind kind;
  private final List<Integer> ranks;

  public CollectiveException(Kind kind, List<Integer> ranks, String message) {
    this(kind, ranks, message, null);
  }

  /**
   * A failure with its cause.
   *
   * @param ranks those at fault, empty when none is known
   */
  public CollectiveException(Kind kind, List<Integer> ranks, String message, Throwable cause) {
    super(message, cause);
    this.kind = kind;
    this.ranks = List.copyOf(ranks);
  }

  /** A failure of kind INVALID: the arguments are wrong on this rank. */
  public static CollectiveException invalid(String message) {
    return new CollectiveException(Kind.INVALID, List.of(), message);
  }

  public Kind kind() {
    return kind;
  }

  /** The ranks at fault, in order; empty when none is known. */
  public List<Integer> ranks() {
    return ranks;
  }

  /** Such as "rank 3" or "ranks 1, 4", for messages. */
  public static String name(List<Integer> ranks) {
    String list = ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
    return (ranks.size() == 1 ? "rank " : "ranks ") + list;
  }

  /**
   * Returns the same failure for another operation: a new stack trace, with this failure as its
   * cause.
   */
  public CollectiveException forOperation(String operation) {
    return new CollectiveException(kind, ranks, operation + " cannot run: " + getMessage(), this);
  }

  /**
   * Encodes a failure as bytes, so that other ranks can throw it too. Stateless.
   *
   * <pre>
   *   byte kind (index into its name list) | byte ranks | int each rank | UTF-8 message
   * </pre>
   */
  public static final class FailureCodec {
    private static final int MAX_RANKS = 64;
    private static final List<CollectiveException.Kind> KINDS =
        List.of(CollectiveException.Kind.values());

    private FailureCodec() {}

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
}
