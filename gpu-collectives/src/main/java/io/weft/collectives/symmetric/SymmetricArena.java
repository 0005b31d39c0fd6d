package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.Topology;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import io.weft.memory.OffsetLedger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory that every rank of a communicator reserves in the same way, so a segment and an offset
 * mean the same place on all ranks. Collectives on buffers of a {@link Window} work in place.
 * Memory is reused, not unmapped, until the arena is closed.
 *
 * <p>Each rank chooses the place of a window itself, and the ranks then compare. If the arenas of
 * the ranks differ, an error names the ranks; no rank ever writes to a wrong place.
 *
 * <p>{@link #window} is collective; everything else is thread-safe. Closing is not collective.
 * Close the arena after the last operation on its memory: mappings are removed when the uses of all
 * windows have ended.
 */
public final class SymmetricArena implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SymmetricArena.class);
  private static final byte POISON = (byte) 0xdb;

  private final Communicator communicator;
  private final SymmetricOptions options;
  private final CommunicatorBootstrap bootstrap;
  private final SignalWait waiting;
  private final List<SymmetricSegment> segments = new ArrayList<>();

  /** The segments of an earlier communicator. */
  private final Set<SymmetricSegment> adopted = new HashSet<>();

  /** Null before the first window. */
  private Gang gang;

  private boolean keep;
  private final Map<Integer, Window> windows = new HashMap<>();

  /** Not guarded by this object's lock: work that ends must not wait for a running collective. */
  private final Set<Integer> ended = new ConcurrentSkipListSet<>();

  private final UseCount uses = new UseCount(this::unmap);
  private int nextNumber;
  private boolean closed;

  private SymmetricArena(Communicator communicator, SymmetricOptions options) {
    this.communicator = communicator;
    this.options = options;
    this.bootstrap = new CommunicatorBootstrap(communicator);
    this.waiting = new SignalWait(communicator);
  }

  /**
   * Creates an arena without segments; local.
   *
   * @param communicator stays the caller's, and must stay open as long as the arena
   * @throws CollectiveException of kind INVALID, on all ranks, if they do not share memory
   */
  public static SymmetricArena open(Communicator communicator, SymmetricOptions options) {
    refusal(communicator.topology())
        .ifPresent(
            reason -> {
              throw CollectiveException.invalid(reason);
            });
    return new SymmetricArena(communicator, options);
  }

  /** Why ranks in this topology have no symmetric memory; empty if they have. */
  public static Optional<String> refusal(Topology topology) {
    if (topology.isOneHost()) {
      return Optional.empty();
    }
    return Optional.of(
        "symmetric memory needs ranks that map each other's memory, but these are apart: ranks "
            + topology.hosts()
            + "; open it on a communicator of one host's ranks, or use collectives and"
            + " send/receive");
  }

  /**
   * Allocates the same number of bytes on every rank, with signals at zero and undefined contents.
   * Collective.
   *
   * @param bytes 0 to 2 GiB less the size of the signals, 128 bytes per rank
   * @throws CollectiveException of kind MISMATCH if ranks request different windows, or IO if a
   *     rank has no room; then the arena is unchanged. Also of kind MISMATCH if the arenas differ;
   *     then only {@link #close} works.
   */
  public Window window(long bytes) {
    return window(bytes, opened -> {});
  }

  /** Initializes a rank's own part before any peer may access it. */
  interface Initializer {
    void run(Window window);
  }

  Window window(long bytes, Initializer initializer) {
    return window(bytes, bytes + " bytes", initializer);
  }

  /**
   * As {@link #window(long)}.
   *
   * @param elements describes the content; the same on all ranks
   */
  synchronized Window window(long bytes, String elements, Initializer initializer) {
    requireOpen();
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, Deadline.after(communicator.timeout()));
    List<WindowRequest> all =
        rounds.exchange("window", () -> request(bytes, elements).encode()).stream()
            .map(WindowRequest::decode)
            .toList();
    WindowRequest.requireSame(all);
    WindowRequest.endedEverywhere(all).forEach(this::reclaim);
    if (gang == null) {
      join(rounds);
    }
    Window window = allocate(bytes, rounds);
    window.zeroSignals();
    initializer.run(window);
    requireEqualPlaces(window, rounds);
    windows.put(window.number(), window);
    uses.retain();
    return window;
  }

  /** Rejects a bad request within the round, so the other ranks do not wait for this one. */
  private WindowRequest request(long bytes, String elements) {
    long most = mostBytes(communicator.nranks());
    if (bytes < 0 || bytes > most) {
      throw CollectiveException.invalid(
          "rank "
              + communicator.rank()
              + " asks for a symmetric window of "
              + elements
              + "; allowed are 0 to "
              + most
              + " bytes");
    }
    return new WindowRequest(bytes, elements, nextNumber, new TreeSet<>(ended));
  }

  /** The longest window of a communicator with that many ranks. */
  static long mostBytes(int nranks) {
    return SymmetricOptions.MAX_BYTES - nranks * Window.LINE;
  }

  /** Finds the members. */
  private void join(BootstrapRounds rounds) {
    if (options.cache().isEmpty()) {
      gang = Gang.of(Collections.nCopies(communicator.nranks(), ""), communicator.rank());
      return;
    }
    byte[] own = options.cache().get().member().getBytes(StandardCharsets.UTF_8);
    List<String> names =
        rounds.exchange("members", () -> own).stream()
            .map(name -> new String(name, StandardCharsets.UTF_8))
            .toList();
    gang = Gang.of(names, communicator.rank());
  }

  private Window allocate(long bytes, BootstrapRounds rounds) {
    long footprint = Window.footprint(bytes, communicator.nranks());
    for (SymmetricSegment segment : segments) {
      long offset = segment.ledger().take(footprint);
      if (offset != OffsetLedger.NONE) {
        return served(segment, offset, bytes);
      }
    }
    SymmetricSegment more = adopt(footprint, rounds).orElseGet(() -> create(footprint, rounds));
    segments.add(more);
    return served(more, more.ledger().take(footprint), bytes);
  }

  private Window served(SymmetricSegment segment, long offset, long bytes) {
    options.cache().ifPresent(cache -> cache.served(adopted.contains(segment)));
    return new Window(this, segment, nextNumber++, offset, bytes);
  }

  /** Takes memory that the members have of an earlier communicator. */
  private Optional<SymmetricSegment> adopt(long bytes, BootstrapRounds rounds) {
    Optional<SymmetricSegment> found =
        options.cache().flatMap(cache -> cache.adopt(communicator, gang, bytes, rounds));
    found.ifPresent(adopted::add);
    return found;
  }

  private SymmetricSegment create(long footprint, BootstrapRounds rounds) {
    long bytes =
        Math.max(OffsetLedger.aligned(options.segmentBytes()), OffsetLedger.aligned(footprint));
    SymmetricSegment created =
        SymmetricSegment.create(
            communicator,
            gang,
            options.memory(),
            Math.min(bytes, SymmetricOptions.MAX_BYTES),
            segments.size(),
            rounds);
    options.cache().ifPresent(cache -> cache.created(gang, created));
    return created;
  }

  private void requireEqualPlaces(Window window, BootstrapRounds rounds) {
    byte[] place = window.place().getBytes(StandardCharsets.UTF_8);
    List<String> places =
        rounds.exchange("places", () -> place).stream()
            .map(message -> new String(message, StandardCharsets.UTF_8))
            .toList();
    List<Integer> others = new ArrayList<>();
    for (int rank = 1; rank < places.size(); rank++) {
      if (!places.get(rank).equals(places.get(0))) {
        others.add(rank);
      }
    }
    if (!others.isEmpty()) {
      throw new CollectiveException(
          Kind.MISMATCH,
          others,
          "symmetric window #"
              + window.number()
              + " is at different places of the arenas: "
              + places
              + " by rank; a rank has allocated what others have not");
    }
  }

  /** Frees the bytes of a window that has ended on all ranks. */
  private void reclaim(int number) {
    Window window = windows.remove(number);
    ended.remove(number);
    long footprint = Window.footprint(window.bytes(), communicator.nranks());
    if (options.poison()) {
      long start = window.segment().base(communicator.rank()) + window.offset();
      Memory.setMemory(start, footprint, POISON);
    }
    window.segment().ledger().give(window.offset(), footprint);
  }

  /** Called when the last use of a window on this rank has ended; runs on any thread. */
  void ended(int number) {
    ended.add(number);
    uses.release();
  }

  private synchronized void unmap() {
    segments.forEach(this::release);
    segments.clear();
  }

  private void release(SymmetricSegment segment) {
    segment.detach();
    if (options.cache().isEmpty()) {
      close(segment);
    } else if (keep) {
      options.cache().get().giveBack(gang, segment);
    } else {
      options.cache().get().drop(gang, segment);
    }
  }

  /** Logs a failure, because there may be more segments to close. */
  private void close(SymmetricSegment segment) {
    try {
      segment.close();
    } catch (RuntimeException e) {
      LOG.warn("{} did not free all its symmetric memory", communicator, e);
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the symmetric arena of " + communicator + " is closed");
    }
  }

  public Communicator communicator() {
    return communicator;
  }

  SignalWait waiting() {
    return waiting;
  }

  synchronized String place(SymmetricSegment segment) {
    return String.valueOf(segments.indexOf(segment));
  }

  /** The bytes that this rank has reserved. */
  synchronized long reservedBytes() {
    return segments.stream().mapToLong(SymmetricSegment::bytes).sum();
  }

  /** The bytes of windows that are not free yet, including signals. */
  synchronized long usedBytes() {
    return segments.stream()
        .mapToLong(segment -> segment.bytes() - segment.ledger().freeBytes())
        .sum();
  }

  /** Closes the open windows, and unmaps once their uses have ended. Closing again does nothing. */
  @Override
  public void close() {
    close(false);
  }

  /**
   * As {@link #close()}.
   *
   * @param reusable whether the memory goes to the cache of the options, if there is one. The rank
   *     then has no operation that still runs.
   */
  public void close(boolean reusable) {
    List<Window> open;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      keep = reusable;
      open = windows.values().stream().filter(window -> !ended.contains(window.number())).toList();
    }
    open.forEach(Window::close);
    uses.release();
    if (uses.count() > 0) {
      LOG.info(
          "{} keeps its symmetric memory mapped: {} windows are used by work that still runs",
          communicator,
          uses.count());
    }
  }

  /**
   * The message of a rank when all request a window.
   *
   * <pre> long bytes | int number of the window | int count | int each ended window | the elements
   * </pre>
   *
   * @param elements describes the content
   * @param number how many windows this rank has requested before
   * @param ended windows whose last use on this rank has ended and whose bytes are not reused yet
   */
  record WindowRequest(long bytes, String elements, int number, Set<Integer> ended) {
    private static final int HEAD_BYTES = 16;

    byte[] encode() {
      byte[] text = elements.getBytes(StandardCharsets.UTF_8);
      ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + 4 * ended.size() + text.length);
      out.putLong(bytes).putInt(number).putInt(ended.size());
      ended.forEach(out::putInt);
      out.put(text);
      return out.array();
    }

    static WindowRequest decode(byte[] message) {
      ByteBuffer in = ByteBuffer.wrap(message);
      if (message.length < HEAD_BYTES
          || in.getInt(HEAD_BYTES - 4) < 0
          || message.length < HEAD_BYTES + 4L * in.getInt(HEAD_BYTES - 4)) {
        throw new CollectiveException(
            Kind.MISMATCH,
            List.of(),
            "a rank's request for a window, of " + message.length + " bytes, is not readable");
      }
      long bytes = in.getLong();
      int number = in.getInt();
      Set<Integer> ended = new TreeSet<>();
      for (int left = in.getInt(); left > 0; left--) {
        ended.add(in.getInt());
      }
      String elements = StandardCharsets.UTF_8.decode(in).toString();
      return new WindowRequest(bytes, elements, number, ended);
    }

    /** Checks that all ranks request the same window; names those that differ from rank 0. */
    static void requireSame(List<WindowRequest> all) {
      WindowRequest first = all.get(0);
      List<Integer> others = new ArrayList<>();
      for (int rank = 1; rank < all.size(); rank++) {
        if (!all.get(rank).asksLike(first)) {
          others.add(rank);
        }
      }
      if (!others.isEmpty()) {
        WindowRequest other = all.get(others.get(0));
        List<Integer> ranks = new ArrayList<>(List.of(0));
        ranks.addAll(others);
        throw new CollectiveException(
            Kind.MISMATCH,
            ranks,
            "rank 0 asks for symmetric "
                + first
                + " but "
                + CollectiveException.name(others)
                + " for "
                + other
                + "; all ranks must ask for the same windows in the same order");
      }
    }

    private boolean asksLike(WindowRequest other) {
      return bytes == other.bytes && number == other.number && elements.equals(other.elements);
    }

    /** The windows that have ended on all ranks, in order. */
    static Set<Integer> endedEverywhere(List<WindowRequest> all) {
      Set<Integer> ended = new TreeSet<>(all.get(0).ended);
      all.forEach(request -> ended.retainAll(request.ended));
      return ended;
    }

    @Override
    public String toString() {
      return "window #" + number + " of " + elements;
    }
  }
}
