package io.weft.collectives.nccl;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.nccl.DeviceArena.Segment;
import io.weft.collectives.nccl.MemorySharing.Registration;
import io.weft.collectives.nccl.NcclEnginePair.NcclEngineLane;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.memory.Bytes;
import io.weft.memory.OffsetLedger;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The buffers of a communicator in memory of its ranks' GPUs. They are parts of segments, which are
 * registered once as windows of NCCL. Every rank makes the same decisions from what all ranks have
 * told each other, so a buffer has the same place in the same window on each of them.
 *
 * <p>Thread-safe. Segments and their runs change only in the communicator's turn.
 */
final class DeviceBuffers {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceBuffers.class);

  /** The reasons for memory without a window that this process has logged. */
  private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

  private static final long ALIGNMENT = 512;
  private static final long LARGEST_BYTES = 1L << 40;

  private final NcclCommunicator communicator;
  private final DeviceArena arena;
  private final List<Windowed> segments = new ArrayList<>();

  /** The buffers whose runs are not free, by number. */
  private final TreeMap<Integer, Allocated> allocated = new TreeMap<>();

  private int next;
  private boolean closed;

  DeviceBuffers(NcclCommunicator communicator) {
    this.communicator = communicator;
    this.arena = communicator.nccl().arena();
  }

  /** See {@link io.weft.collectives.GpuCommunicator#onDevice}. */
  GpuBuffer allocate(DataType type, long count) {
    AtomicReference<GpuBuffer> made = new AtomicReference<>();
    AtomicReference<CollectiveException> refusal = new AtomicReference<>();
    communicator.inTurn(
        "allocating memory of GPUs",
        deadline -> {
          try {
            made.set(new Turn(deadline).allocate(type, count));
          } catch (Refusal e) {
            refusal.set(e.reason);
          }
        });
    if (refusal.get() != null) {
      throw refusal.get();
    }
    return made.get();
  }

  /**
   * Closes all buffers. The communicator is closed.
   *
   * @param reusable whether it worked until its end, so that no rank writes to the memory any more
   * @param idle whether the GPU is idle; else the memory is kept for good
   */
  void close(boolean reusable, boolean idle) {
    List<Windowed> ended;
    synchronized (this) {
      closed = true;
      allocated.values().forEach(Allocated::close);
      allocated.clear();
      ended = List.copyOf(segments);
      segments.clear();
    }
    for (Windowed each : ended) {
      each.window.ifPresent(DeviceWindow::close);
      if (reusable && idle) {
        arena.giveBack(each.segment);
      } else if (idle) {
        arena.drop(each.segment);
      } else {
        LOG.warn(
            "{} of GPU memory of {} are kept until the process ends, because the GPU still works",
            Bytes.text(each.segment.bytes()),
            communicator);
      }
    }
  }

  /** All ranks refuse a buffer, and the communicator stays usable. */
  private static final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final CollectiveException reason;

    Refusal(CollectiveException reason) {
      super(reason);
      this.reason = reason;
    }
  }

  /**
   * A segment of this communicator.
   *
   * @param runs the free runs of the segment
   * @param window empty if NCCL has no windows
   * @param whyNoWindow why NCCL does not use the segment as a window; empty if it does
   */
  private record Windowed(
      Segment segment,
      OffsetLedger runs,
      Optional<DeviceWindow> window,
      Optional<String> whyNoWindow) {}

  /**
   * What a rank asks for.
   *
   * @param released the numbers of buffers that this rank does not use any more
   */
  private record Request(int type, long count, List<Integer> released) {
    byte[] encode() {
      ByteBuffer out = ByteBuffer.allocate(16 + 4 * released.size());
      out.putInt(type).putLong(count).putInt(released.size());
      released.forEach(out::putInt);
      return out.array();
    }

    static Request decode(byte[] message) {
      ByteBuffer in = ByteBuffer.wrap(message);
      int type = in.getInt();
      long count = in.getLong();
      List<Integer> released = new ArrayList<>();
      for (int left = in.getInt(); left > 0; left--) {
        released.add(in.getInt());
      }
      return new Request(type, count, released);
    }
  }

  /** One allocation in the communicator's turn. */
  private final class Turn {
    private final Deadline deadline;
    private final BootstrapRounds rounds;
    private final int rank = communicator.rank();

    Turn(Deadline deadline) {
      this.deadline = deadline;
      this.rounds = new BootstrapRounds(new CommunicatorBootstrap(communicator.host()), deadline);
    }

    Allocated allocate(DataType type, long count) {
      List<Request> requests =
          agreed("gpubuffer", () -> request(type, count).encode()).stream()
              .map(Request::decode)
              .toList();
      requireSame(requests, type, count);
      free(requests);
      long bytes = Math.max(ALIGNMENT, (count * type.bytes() + ALIGNMENT - 1) & -ALIGNMENT);
      for (Windowed each : segments) {
        long offset = each.runs.take(bytes);
        if (offset != OffsetLedger.NONE) {
          return allocated(each, offset, bytes, type, count);
        }
      }
      Windowed fresh = open(arena.rounded(bytes));
      return allocated(fresh, fresh.runs.take(bytes), bytes, type, count);
    }

    private List<byte[]> agreed(String round, BootstrapRounds.Contribution part) {
      try {
        return rounds.exchange(round, part);
      } catch (CollectiveException e) {
        if (e.kind() == Kind.INVALID) {
          throw new Refusal(e);
        }
        throw e;
      }
    }

    private Request request(DataType type, long count) {
      if (count < 0 || count > LARGEST_BYTES / type.bytes()) {
        throw RankRefusal.of(
            List.of(rank), "rank %d asks for %d %s".formatted(rank, count, type), null);
      }
      synchronized (DeviceBuffers.this) {
        return new Request(
            type.code(),
            count,
            allocated.values().stream()
                .filter(Allocated::isReleased)
                .map(each -> each.number)
                .toList());
      }
    }

    private void requireSame(List<Request> requests, DataType type, long count) {
      List<Integer> others = new ArrayList<>();
      Request first = requests.get(0);
      for (int each = 1; each < requests.size(); each++) {
        Request other = requests.get(each);
        if (other.type != first.type || other.count != first.count) {
          others.add(each);
        }
      }
      if (!others.isEmpty()) {
        throw new Refusal(
            new CollectiveException(
                Kind.MISMATCH,
                others,
                "rank %d asks for %d %s on its GPU, but %s for another buffer than rank 0; all"
                        .formatted(rank, count, type, CollectiveException.name(others))
                    + " ranks must ask for the same buffers in the same order"));
      }
    }

    /** Frees the runs that no rank uses any more. */
    private void free(List<Request> requests) {
      Set<Integer> unused = new HashSet<>(requests.get(0).released);
      requests.forEach(each -> unused.retainAll(each.released));
      synchronized (DeviceBuffers.this) {
        unused.stream().sorted().map(allocated::remove).forEach(Allocated::freeRun);
      }
    }

    /** Takes a segment on all ranks, or on none, and registers it. */
    private Windowed open(long bytes) {
      AtomicReference<Segment> taken = new AtomicReference<>();
      try {
        List<byte[]> unused =
            agreed(
                "gpusegment",
                () -> {
                  taken.set(take(bytes));
                  return new byte[0];
                });
        Registration registered =
            new MemorySharing(communicator).registerInTurn(taken.get().memory(), deadline);
        Windowed fresh = windowed(taken.get(), registered);
        keep(fresh);
        return fresh;
      } catch (Refusal e) {
        if (taken.get() != null) {
          arena.giveBack(taken.get());
        }
        throw e;
      } catch (RuntimeException | Error e) {
        // The caller breaks the communicator; another rank may have mapped the segment.
        if (taken.get() != null) {
          arena.drop(taken.get());
        }
        throw e;
      }
    }

    /** The communicator may have been closed while this turn went on. */
    private void keep(Windowed fresh) {
      synchronized (DeviceBuffers.this) {
        if (!closed) {
          segments.add(fresh);
          return;
        }
      }
      fresh.window.ifPresent(DeviceWindow::close);
      throw new CollectiveException(Kind.CLOSED, List.of(rank), communicator + " was closed");
    }

    private Segment take(long bytes) {
      try {
        return arena.take(bytes);
      } catch (RuntimeException e) {
        throw RankRefusal.of(
            List.of(rank), "rank %d has no memory: %s".formatted(rank, e.getMessage()), e);
      }
    }

    private Windowed windowed(Segment segment, Registration registered) {
      OffsetLedger runs = new OffsetLedger(segment.bytes());
      if (registered.refusal() == null) {
        arena.registered();
        return new Windowed(
            segment, runs, Optional.of(registered.window()), registered.window().whyUnused());
      }
      if (registered.refusal().kind() != Kind.INVALID) {
        throw registered.refusal();
      }
      String reason = registered.refusal().getMessage();
      if (LOGGED.add(reason)) {
        LOG.warn("{} uses NCCL's own buffers beside those of its GPU: {}", communicator, reason);
      }
      return new Windowed(segment, runs, Optional.empty(), Optional.of(reason));
    }

    private Allocated allocated(
        Windowed segment, long offset, long bytes, DataType type, long count) {
      Allocated made = new Allocated(segment, next++, offset, bytes, type, count);
      synchronized (DeviceBuffers.this) {
        allocated.put(made.number, made);
      }
      NcclEngineLane side = communicator.side(true);
      long address = segment.segment.memory().address() + offset;
      communicator.run(side, "zeroing", () -> side.engine().clear(address, bytes, deadline));
      return made;
    }
  }

  /** A buffer, until no use of it is left. Thread-safe. */
  private final class Allocated implements GpuBuffer, BufferOwner {
    private final Windowed segment;
    private final int number;
    private final long offset;
    private final long runBytes;
    private final long bytes;
    private final TypedBuffer elements;
    private boolean isClosed;

    /** The uses that have not ended, and the buffer itself. */
    private int uses = 1;

    Allocated(Windowed segment, int number, long offset, long runBytes, DataType type, long count) {
      this.segment = segment;
      this.number = number;
      this.offset = offset;
      this.runBytes = runBytes;
      this.bytes = count * type.bytes();
      this.elements = TypedBuffer.of(this, 0, type, count);
    }

    @Override
    public synchronized long address() {
      if (isClosed) {
        throw new IllegalStateException("the buffer is closed");
      }
      return segment.segment.memory().address() + offset;
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public void usedUntil(Event event) {
      synchronized (this) {
        if (isClosed) {
          throw new IllegalStateException("the buffer is closed");
        }
        uses++;
      }
      event.whenReleased(this::endUse);
    }

    private synchronized void endUse() {
      uses--;
    }

    synchronized boolean isReleased() {
      return uses == 0;
    }

    void freeRun() {
      segment.runs.give(offset, runBytes);
    }

    @Override
    public TypedBuffer elements() {
      return elements;
    }

    @Override
    public Optional<String> whyNoWindow() {
      return segment.whyNoWindow;
    }

    @Override
    public void write(TypedBuffer source, long first) {
      Objects.checkFromIndexSize(first, source.count(), elements.count());
      copy(elements.slice(first, source.count()), source);
    }

    @Override
    public void read(TypedBuffer target, long first) {
      Objects.checkFromIndexSize(first, target.count(), elements.count());
      copy(target, elements.slice(first, target.count()));
    }

    private void copy(TypedBuffer to, TypedBuffer from) {
      if (to.type() != from.type()) {
        throw CollectiveException.invalid("a copy of " + from.type() + " to " + to.type());
      }
      if (to.count() == 0) {
        return;
      }
      NcclEngineLane side = communicator.side(true);
      long target = addressOf(to);
      long origin = addressOf(from);
      try {
        communicator.inTurn(
            "copying " + to.bytes() + " bytes",
            deadline ->
                communicator.run(
                    side,
                    "copying",
                    () -> side.engine().copy(target, origin, to.bytes(), deadline)));
      } finally {
        Reference.reachabilityFence(to);
        Reference.reachabilityFence(from);
      }
    }

    private static long addressOf(TypedBuffer buffer) {
      try {
        return buffer.current().address();
      } catch (IllegalStateException e) {
        throw CollectiveException.invalid(buffer + " was freed: " + e.getMessage());
      }
    }

    @Override
    public synchronized void close() {
      if (!isClosed) {
        isClosed = true;
        endUse();
      }
    }
  }
}
