package io.weft.shuffle.peer;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What an executor wrote and read since its last report. Immutable.
 *
 * <p>As bytes; numbers are as in {@link AddressList}:
 *
 * <pre>
 * 1 byte    version 1
 * number    shuffles
 * each shuffle:
 *   number             shuffle id
 *   1 byte             bit i: figure i is not zero
 *   number             each figure that is not zero
 * 1 byte    1 if the sources are hosts, 0 if they are executors
 * number    sources
 * each source:
 *   number, bytes      its name in UTF-8
 *   number             bytes read from it
 * </pre>
 *
 * @param shuffles at most {@link #MAX_ENTRIES}
 * @param byHost whether the sources are hosts instead of executors
 * @param sources bytes read, by the executor or host that had them; at most {@link #MAX_ENTRIES}.
 *     An empty name is the host of the reporting executor
 */
public record TrafficReport(
    List<ShuffleTraffic> shuffles, boolean byHost, Map<String, Long> sources)
    implements Serializable {
  /** Maximum number of shuffles, and of sources, in one report. */
  public static final int MAX_ENTRIES = 256;

  /** A report without figures. */
  public static final TrafficReport NONE = new TrafficReport(List.of(), false, Map.of());

  private static final int LAYOUT = 1;

  public TrafficReport {
    shuffles = List.copyOf(shuffles);
    sources = Collections.unmodifiableMap(new LinkedHashMap<>(sources));
    if (shuffles.size() > MAX_ENTRIES || sources.size() > MAX_ENTRIES) {
      throw new IllegalArgumentException(
          "a report has at most %d shuffles and sources, not %d and %d"
              .formatted(MAX_ENTRIES, shuffles.size(), sources.size()));
    }
  }

  /** A figure of a shuffle. */
  public enum Figure {
    /** Bytes of published map outputs that are on disk, because shared memory was full. */
    ON_DISK(0),
    /** Bytes of the reading executor's own blocks, read in place. */
    OWN(1),
    /** Bytes of other executors on the host, read in place. */
    SAME_HOST(2),
    /** Bytes received over the network. */
    NETWORK(3),
    /** Bytes read from GPUs. */
    GPU(4),
    /** Nanoseconds that readers waited because no block had arrived. */
    WAIT_NANOS(5);

    /** The number of figures. */
    public static final int COUNT = values().length;

    private final int index;

    Figure(int index) {
      this.index = index;
    }

    /** Its place in a list of all figures, and its bit in a report. */
    public int index() {
      return index;
    }
  }

  /**
   * The figures of one shuffle.
   *
   * @param shuffleId Spark's number of the shuffle
   * @param figures one number for each {@link Figure}, in its order
   */
  public record ShuffleTraffic(int shuffleId, List<Long> figures) {
    public ShuffleTraffic {
      figures = List.copyOf(figures);
      if (figures.size() != Figure.COUNT) {
        throw new IllegalArgumentException(figures.size() + " figures, not " + Figure.COUNT);
      }
    }

    static ShuffleTraffic of(int shuffleId, long[] figures) {
      List<Long> all = new ArrayList<>(Figure.COUNT);
      for (long figure : figures) {
        all.add(figure);
      }
      return new ShuffleTraffic(shuffleId, all);
    }

    /** The value of a figure. */
    public long get(Figure figure) {
      return figures.get(figure.index());
    }
  }

  private Object writeReplace() {
    return new EncodedReport(encode());
  }

  /** How a report is sent: objects would take five times the bytes. */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  private record EncodedReport(byte[] bytes) implements Serializable {
    private Object readResolve() throws InvalidObjectException {
      try {
        return decode(bytes);
      } catch (IOException e) {
        throw (InvalidObjectException) new InvalidObjectException(e.getMessage()).initCause(e);
      }
    }
  }

  /** Encodes the report. */
  public byte[] encode() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(LAYOUT);
    number(out, shuffles.size());
    for (ShuffleTraffic shuffle : shuffles) {
      number(out, shuffle.shuffleId());
      int present = 0;
      for (int i = 0; i < Figure.COUNT; i++) {
        present |= shuffle.figures().get(i) == 0 ? 0 : 1 << i;
      }
      out.write(present);
      shuffle.figures().stream().filter(figure -> figure != 0).forEach(f -> number(out, f));
    }
    out.write(byHost ? 1 : 0);
    number(out, sources.size());
    sources.forEach(
        (name, bytes) -> {
          byte[] text = name.getBytes(StandardCharsets.UTF_8);
          number(out, text.length);
          out.write(text, 0, text.length);
          number(out, bytes);
        });
    return out.toByteArray();
  }

  private static void number(ByteArrayOutputStream out, long value) {
    long left = value;
    while ((left & ~0x7fL) != 0) {
      out.write((int) (left & 0x7f) | 0x80);
      left >>>= 7;
    }
    out.write((int) left);
  }

  /**
   * Decodes a report.
   *
   * @throws IOException if {@link #encode} did not write these bytes
   */
  public static TrafficReport decode(byte[] bytes) throws IOException {
    Decoder decoder = new Decoder(ByteBuffer.wrap(bytes));
    int layout = decoder.octet();
    if (layout != LAYOUT) {
      throw new IOException("figures of an executor have layout " + layout + ", not " + LAYOUT);
    }
    List<ShuffleTraffic> shuffles = new ArrayList<>();
    for (long left = decoder.number(MAX_ENTRIES); left > 0; left--) {
      shuffles.add(decoder.shuffle());
    }
    boolean byHost = decoder.octet() == 1;
    Map<String, Long> sources = new LinkedHashMap<>();
    for (long left = decoder.number(MAX_ENTRIES); left > 0; left--) {
      sources.put(decoder.text(), decoder.number(Long.MAX_VALUE));
    }
    if (decoder.in.hasRemaining()) {
      throw new IOException(decoder.in.remaining() + " bytes follow the figures of an executor");
    }
    return new TrafficReport(shuffles, byHost, sources);
  }

  /** Reads figures and checks every length. For one thread. */
  private record Decoder(ByteBuffer in) {
    ShuffleTraffic shuffle() throws IOException {
      int id = (int) number(Integer.MAX_VALUE);
      int present = octet();
      if (present >= 1 << Figure.COUNT) {
        throw new IOException("figures of shuffle " + id + " are of an unknown kind");
      }
      long[] figures = new long[Figure.COUNT];
      for (int i = 0; i < Figure.COUNT; i++) {
        figures[i] = (present & (1 << i)) == 0 ? 0 : number(Long.MAX_VALUE);
      }
      return ShuffleTraffic.of(id, figures);
    }

    String text() throws IOException {
      int length = (int) number(in.remaining());
      if (length > in.remaining()) {
        throw new IOException("figures of an executor are cut short");
      }
      byte[] bytes = new byte[length];
      in.get(bytes);
      return new String(bytes, StandardCharsets.UTF_8);
    }

    int octet() throws IOException {
      if (!in.hasRemaining()) {
        throw new IOException("figures of an executor are cut short");
      }
      return in.get() & 0xff;
    }

    long number(long most) throws IOException {
      long value = 0;
      for (int shift = 0; shift < Long.SIZE; shift += 7) {
        int octet = octet();
        value |= (octet & 0x7fL) << shift;
        if (octet < 0x80) {
          if (value < 0 || value > most) {
            break;
          }
          return value;
        }
      }
      throw new IOException("a number in figures of an executor is above " + most);
    }
  }
}
