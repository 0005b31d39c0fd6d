package io.weft.transfers;

import io.weft.collectives.DataType;
import io.weft.tensor.codec.CodecKind;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The offers of one end in one round, as a block of a fixed size, so that the other end knows the
 * size. Offers that do not fit go into the next round.
 *
 * <pre>
 *   0 int magic | 4 int entries
 *   then for each entry:
 *   0 byte kind: 1 send, 2 receive, 3 send behind recorded work | 1 byte type | 2 short length of the failure | 4 int codec
 *   8 long key | 16 long count | 24 failure, UTF-8
 * </pre>
 *
 * <p>Not thread-safe.
 */
public final class Manifest {
  /** The size of the block. */
  public static final int BYTES = 8 << 10;

  private static final int MAGIC = 0x57454654;
  private static final int HEAD_BYTES = 8;
  private static final int ENTRY_BYTES = 24;
  private static final int MAX_FAILURE_BYTES = 1024;
  private static final byte SEND = 1;
  private static final byte RECEIVE = 2;
  private static final byte RECORDED_SEND = 3;

  private final List<ManifestEntry> entries = new ArrayList<>();
  private final List<byte[]> failures = new ArrayList<>();
  private int bytes = HEAD_BYTES;

  /** Adds an entry unless the block is full. */
  public boolean offer(ManifestEntry entry) {
    byte[] failure = shortened(entry.failure());
    if (bytes + ENTRY_BYTES + failure.length > BYTES) {
      return false;
    }
    entries.add(entry);
    failures.add(failure);
    bytes += ENTRY_BYTES + failure.length;
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
    block.putInt(MAGIC).putInt(entries.size());
    for (int i = 0; i < entries.size(); i++) {
      ManifestEntry entry = entries.get(i);
      block.put(kind(entry)).put((byte) entry.type().code());
      block.putShort((short) failures.get(i).length).putInt(entry.codec().code());
      block.putLong(entry.key()).putLong(entry.count()).put(failures.get(i));
    }
    block.clear();
  }

  private static byte kind(ManifestEntry entry) {
    if (!entry.send()) {
      return RECEIVE;
    }
    return entry.recorded() ? RECORDED_SEND : SEND;
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
    int count = block.getInt();
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
    byte kind = block.get();
    byte type = block.get();
    int failureBytes = Short.toUnsignedInt(block.getShort());
    int codec = block.getInt();
    long key = block.getLong();
    long count = block.getLong();
    if (kind < SEND || kind > RECORDED_SEND || count < 0) {
      throw new IllegalArgumentException("entry " + number + " of a manifest is damaged");
    }
    if (failureBytes > MAX_FAILURE_BYTES || failureBytes > block.remaining()) {
      throw new IllegalArgumentException(
          "entry %d of a manifest has a text of %d bytes".formatted(number, failureBytes));
    }
    byte[] failure = new byte[failureBytes];
    block.get(failure);
    String text = new String(failure, StandardCharsets.UTF_8);
    return new ManifestEntry(
        kind != RECEIVE, key, type(type), count, codec(codec), text, kind == RECORDED_SEND);
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
   * @param send whether this end sends
   * @param key the other end must have the same key
   * @param type of the elements
   * @param count number of elements; 0 only in {@link #IDLE} and verdicts
   * @param codec of the elements
   * @param failure why no payload follows; empty if it follows
   * @param recorded whether the work that writes the elements is recorded and not complete; then
   *     the payload is valid only if the verdict in the manifest after the move says so
   */
  public record ManifestEntry(
      boolean send,
      long key,
      DataType type,
      long count,
      CodecKind codec,
      String failure,
      boolean recorded) {
    /** No transfer: this end gives up the communicator if the other end also does. */
    public static final ManifestEntry IDLE = ManifestEntry.plain(false, 0, DataType.INT8, 0, "");

    /** An entry for elements that are complete. */
    public ManifestEntry(
        boolean send, long key, DataType type, long count, CodecKind codec, String failure) {
      this(send, key, type, count, codec, failure, false);
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
      return send && count == 0;
    }

    /** An entry for elements without a codec. */
    public static ManifestEntry plain(
        boolean send, long key, DataType type, long count, String failure) {
      return new ManifestEntry(send, key, type, count, CodecKind.NONE, failure);
    }

    /** Whether the two ends mean the same transfer. */
    public boolean matches(ManifestEntry other) {
      return send != other.send
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
