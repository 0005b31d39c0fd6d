package io.weft.transfers;

import io.weft.collectives.DataType;
import io.weft.tensor.codec.CodecKind;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * The offers of one end in one round, or its later withdrawals, as a block of a fixed size, so that
 * the other end knows the size. Offers that do not fit go into the next round.
 *
 * <pre>
 *   0 int magic | 4 short version | 6 short entries
 *   then for each entry:
 *   0 byte kind, see {@link ManifestEntry.Kind} | 1 byte type | 2 short length of the failure | 4 int codec
 *   8 long key | 16 long count | 24 int work | 28 int attempt | 32 failure, UTF-8
 * </pre>
 *
 * <p>Not thread-safe.
 */
public final class Manifest {
  /** The size of the block. */
  public static final int BYTES = 8 << 10;

  private static final int MAGIC = 0x57454654;
  private static final short VERSION = 3;
  private static final int HEAD_BYTES = 8;
  private static final int ENTRY_BYTES = 32;
  private static final int MAX_FAILURE_BYTES = 1024;

  private final List<ManifestEntry> entries = new ArrayList<>();
  private final List<byte[]> failures = new ArrayList<>();
  private int bytes = HEAD_BYTES;

  /** Adds all of these entries, or none if they do not fit. Returns whether they fit. */
  public boolean offer(ManifestEntry... more) {
    List<byte[]> texts = new ArrayList<>();
    int after = bytes;
    for (ManifestEntry entry : more) {
      byte[] text = shortened(entry.failure());
      texts.add(text);
      after += ENTRY_BYTES + text.length;
    }
    if (after > BYTES) {
      return false;
    }
    entries.addAll(List.of(more));
    failures.addAll(texts);
    bytes = after;
    return true;
  }

  private static byte[] shortened(String failure) {
    String text = failure;
    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
    while (utf8.length > MAX_FAILURE_BYTES) {
      text = text.substring(0, text.length() * 9 / 10);
      utf8 = (text + "…").getBytes(StandardCharsets.UTF_8);
    }
    return utf8;
  }

  public List<ManifestEntry> entries() {
    return List.copyOf(entries);
  }

  /** Writes the block from its start. The buffer must have {@link #BYTES} bytes. */
  public void encode(ByteBuffer block) {
    block.clear().order(ByteOrder.LITTLE_ENDIAN);
    block.putInt(MAGIC).putShort(VERSION).putShort((short) entries.size());
    for (int i = 0; i < entries.size(); i++) {
      ManifestEntry entry = entries.get(i);
      block.put(entry.kind().code()).put((byte) entry.type().code());
      block.putShort((short) failures.get(i).length).putInt(entry.codec().code());
      block.putLong(entry.key()).putLong(entry.count());
      block.putInt(entry.attempt().work()).putInt(entry.attempt().number()).put(failures.get(i));
    }
    block.clear();
  }

  /**
   * Reads a block from its start.
   *
   * @throws IllegalArgumentException if the block is not a manifest; decoding reads nothing outside
   *     of the block and allocates nothing larger than it
   */
  public static List<ManifestEntry> decode(ByteBuffer block) {
    block.clear().order(ByteOrder.LITTLE_ENDIAN);
    if (block.remaining() < HEAD_BYTES || block.getInt() != MAGIC) {
      throw new IllegalArgumentException("the peer's message is not a manifest of transfers");
    }
    short version = block.getShort();
    if (version != VERSION) {
      throw new IllegalArgumentException(
          "the peer's manifest has version %d, and this end has %d".formatted(version, VERSION));
    }
    int count = block.getShort();
    if (count < 0 || count > (block.capacity() - HEAD_BYTES) / ENTRY_BYTES) {
      throw new IllegalArgumentException("a manifest cannot have " + count + " entries");
    }
    List<ManifestEntry> entries = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      entries.add(entry(block, i));
    }
    return entries;
  }

  private static ManifestEntry entry(ByteBuffer block, int number) {
    if (block.remaining() < ENTRY_BYTES) {
      throw new IllegalArgumentException("a manifest ends before its entry " + number);
    }
    Optional<ManifestEntry.Kind> kind = ManifestEntry.Kind.of(block.get());
    byte type = block.get();
    int failureBytes = Short.toUnsignedInt(block.getShort());
    int codec = block.getInt();
    long key = block.getLong();
    long count = block.getLong();
    TransferAttempt attempt = new TransferAttempt(block.getInt(), block.getInt());
    if (kind.isEmpty() || count < 0) {
      throw new IllegalArgumentException("entry " + number + " of a manifest is damaged");
    }
    if (failureBytes > MAX_FAILURE_BYTES || failureBytes > block.remaining()) {
      throw new IllegalArgumentException(
          "entry %d of a manifest has a text of %d bytes".formatted(number, failureBytes));
    }
    byte[] failure = new byte[failureBytes];
    block.get(failure);
    String text = new String(failure, StandardCharsets.UTF_8);
    return new ManifestEntry(kind.get(), key, type(type), count, codec(codec), text, attempt);
  }

  private static CodecKind codec(int code) {
    for (CodecKind codec : CodecKind.values()) {
      if (codec.code() == code) {
        return codec;
      }
    }
    throw new IllegalArgumentException("a manifest has the unknown codec " + code);
  }

  private static DataType type(byte code) {
    for (DataType type : DataType.values()) {
      if (type.code() == code) {
        return type;
      }
    }
    throw new IllegalArgumentException("a manifest has the unknown type " + code);
  }

  /**
   * One transfer, as one end offers it to the other.
   *
   * @param key the other end must have the same key
   * @param type of the elements
   * @param count number of elements; 0 only in {@link #IDLE} and verdicts; in a withdrawal the
   *     number of the withdrawn offer
   * @param codec of the elements
   * @param failure why no payload follows; empty if it follows
   * @param attempt of the work that has started the transfer
   */
  public record ManifestEntry(
      Kind kind,
      long key,
      DataType type,
      long count,
      CodecKind codec,
      String failure,
      TransferAttempt attempt) {
    /** What an entry means. */
    public enum Kind {
      SEND(1),
      RECEIVE(2),
      /**
       * A send whose source is recorded and not complete: the payload is valid only if the verdict
       * in the manifest after the move says so.
       */
      RECORDED_SEND(3),
      /** An earlier offer, by its number among the sends of this end, has failed. */
      WITHDRAWN_SEND(4),
      /** An earlier offer, by its number among the receives of this end, has failed. */
      WITHDRAWN_RECEIVE(5);

      private static final Kind[] KINDS = values();

      private final byte code;

      Kind(int code) {
        this.code = (byte) code;
      }

      byte code() {
        return code;
      }

      static Optional<Kind> of(byte code) {
        return Arrays.stream(KINDS).filter(kind -> kind.code == code).findFirst();
      }

      static Kind of(boolean send, boolean recorded) {
        if (!send) {
          return RECEIVE;
        }
        return recorded ? RECORDED_SEND : SEND;
      }
    }

    /** No transfer: this end gives up the communicator if the other end also does. */
    public static final ManifestEntry IDLE = ManifestEntry.plain(false, 0, DataType.INT8, 0, "");

    /** An entry for elements that are complete, of no attempt. */
    public ManifestEntry(
        boolean send, long key, DataType type, long count, CodecKind codec, String failure) {
      this(Kind.of(send, false), key, type, count, codec, failure, TransferAttempt.NONE);
    }

    /**
     * The withdrawal of an earlier offer.
     *
     * @param number of the offer in its direction on this communicator, from 0
     * @param failure not empty
     */
    static ManifestEntry withdrawal(ManifestEntry offer, long number, String failure) {
      Kind kind = offer.send() ? Kind.WITHDRAWN_SEND : Kind.WITHDRAWN_RECEIVE;
      return new ManifestEntry(
          kind, offer.key, offer.type, number, offer.codec, failure, offer.attempt);
    }

    /** This offer, failed: no payload follows. */
    ManifestEntry withFailure(String text) {
      return new ManifestEntry(Kind.of(send(), false), key, type, count, codec, text, attempt);
    }

    /** Whether this end sends. */
    public boolean send() {
      return kind != Kind.RECEIVE && kind != Kind.WITHDRAWN_RECEIVE;
    }

    /** Whether the source is recorded and not complete. */
    public boolean recorded() {
      return kind == Kind.RECORDED_SEND;
    }

    /** Whether this is a {@link #withdrawal}. */
    boolean isWithdrawal() {
      return kind == Kind.WITHDRAWN_SEND || kind == Kind.WITHDRAWN_RECEIVE;
    }

    /** Whether no payload follows. */
    boolean hasFailed() {
      return !failure.isEmpty();
    }

    /**
     * No transfer, but the verdict of this end on its sends behind recorded work.
     *
     * @param failure of that work; empty if it succeeded
     */
    public static ManifestEntry verdict(String failure) {
      return ManifestEntry.plain(true, 0, DataType.INT8, 0, failure);
    }

    /** Whether this entry is a {@link #verdict}. */
    public boolean isVerdict() {
      return kind == Kind.SEND && count == 0;
    }

    /** An entry for elements without a codec. */
    public static ManifestEntry plain(
        boolean send, long key, DataType type, long count, String failure) {
      return new ManifestEntry(send, key, type, count, CodecKind.NONE, failure);
    }

    /** Whether the two ends mean the same transfer. */
    public boolean matches(ManifestEntry other) {
      return send() != other.send()
          && key == other.key
          && type == other.type
          && count == other.count
          && codec == other.codec;
    }

    /** For example "key 7 (256 float32)" or "key 7 (256 float32 as ZSTD)". */
    @Override
    public String toString() {
      String form = codec == CodecKind.NONE ? "" : " as " + codec;
      return "key " + key + " (" + count + " " + type + form + ")";
    }
  }
}
