package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.nccl.CommunicatorWindows.Registration;
import io.weft.collectives.nccl.DeviceArena.Segment;
import io.weft.collectives.nccl.NcclEnginePair.NcclEngineLane;
import io.weft.device.Deadline;
import io.weft.memory.Bytes;
import io.weft.memory.OffsetLedger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
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
  private final TreeMap<Integer, AllocatedBuffer> allocated = new TreeMap<>();

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
    List<AllocatedBuffer> buffers;
    List<Windowed> ended;
    synchronized (this) {
      closed = true;
      buffers = List.copyOf(allocated.values());
      allocated.clear();
      ended = List.copyOf(segments);
      segments.clear();
    }
    buffers.forEach(AllocatedBuffer::close);
    for (Windowed each : ended) {
      each.window.ifPresent(DeviceWindow::close);
      if (idle) {
        whenUnused(each, buffers, () -> end(each.segment, reusable));
      } else {
        LOG.warn(
            "{} of GPU memory of {} are kept until the process ends, because the GPU still works",
            Bytes.text(each.segment.bytes()),
            communicator);
      }
    }
  }

  private void end(Segment segment, boolean reusable) {
    if (reusable) {
      arena.giveBack(segment);
    } else {
      arena.drop(segment);
    }
  }

  /** Others than the communicator may hold a buffer, for example a copy on another stream. */
  private static void whenUnused(Windowed segment, List<AllocatedBuffer> buffers, Runnable action) {
    List<AllocatedBuffer> inside =
        buffers.stream().filter(each -> each.segment().equals(segment)).toList();
    AtomicInteger left = new AtomicInteger(inside.size() + 1);
    Runnable countdown =
        () -> {
          if (left.decrementAndGet() == 0) {
            action.run();
          }
        };
    inside.forEach(each -> each.whenReleased(countdown));
    countdown.run();
  }

  /** The communicator may be closed while a turn goes on. The caller holds the monitor. */
  private void requireOpen() {
    if (closed) {
      throw new CollectiveException(
          Kind.CLOSED, List.of(communicator.rank()), communicator + " was closed");
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
  record Windowed(
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

    boolean isLike(Request other) {
      return type == other.type && count == other.count;
    }

    @Override
    public String toString() {
      return Arrays.stream(DataType.values())
          .filter(each -> each.code() == type)
          .map(each -> count + " " + each)
          .findFirst()
          .orElse(count + " elements of type " + type);
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
    private final CommunicatorWindows windows = new CommunicatorWindows(communicator);

    Turn(Deadline deadline) {
      this.deadline = deadline;
      this.rounds = new BootstrapRounds(new CommunicatorBootstrap(communicator.host()), deadline);
    }

    AllocatedBuffer allocate(DataType type, long count) {
      List<Request> requests =
          agreed("gpubuffer", () -> request(type, count).encode()).stream()
              .map(Request::decode)
              .toList();
      requireSame(requests);
      free(requests);
      long bytes = Math.max(ALIGNMENT, (count * type.bytes() + ALIGNMENT - 1) & -ALIGNMENT);
      for (Windowed each : present()) {
        long offset = each.runs.take(bytes);
        if (offset != OffsetLedger.NONE) {
          return allocated(each, offset, bytes, type, count);
        }
      }
      giveBackFree();
      Windowed fresh = open(arena.rounded(bytes));
      return allocated(fresh, fresh.runs.take(bytes), bytes, type, count);
    }

    private List<Windowed> present() {
      synchronized (DeviceBuffers.this) {
        requireOpen();
        return List.copyOf(segments);
      }
    }

    /**
     * Returns the segments without buffers to the arena, so that their bytes count for the new
     * segment. The runs are equal on all ranks, so all return the same ones.
     */
    private void giveBackFree() {
      for (Windowed each : present()) {
        if (each.runs.freeBytes() == each.segment.bytes()) {
          each.window.ifPresent(windows::endInTurn);
          if (remove(each)) {
            arena.giveBack(each.segment);
          }
        }
      }
    }

    /** Returns false if the communicator was closed meanwhile, which ends the segment. */
    private boolean remove(Windowed segment) {
      synchronized (DeviceBuffers.this) {
        return segments.remove(segment);
      }
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
                .filter(AllocatedBuffer::isReleased)
                .map(AllocatedBuffer::number)
                .toList());
      }
    }

    private void requireSame(List<Request> requests) {
      Request first = requests.get(0);
      List<Integer> others =
          IntStream.range(1, requests.size())
              .filter(each -> !requests.get(each).isLike(first))
              .boxed()
              .toList();
      if (!others.isEmpty()) {
        throw new Refusal(
            new CollectiveException(
                Kind.MISMATCH,
                others,
                "rank 0 asks for %s on its GPU, but rank %d for %s; all ranks must ask for the same"
                        .formatted(first, others.get(0), requests.get(others.get(0)))
                    + " buffers in the same order"));
      }
    }

    /** Frees the runs that no rank uses any more. */
    private void free(List<Request> requests) {
      Set<Integer> unused = new HashSet<>(requests.get(0).released);
      requests.forEach(each -> unused.retainAll(each.released));
      synchronized (DeviceBuffers.this) {
        requireOpen();
        unused.stream().sorted().map(allocated::remove).forEach(AllocatedBuffer::freeRun);
      }
    }

    /** Takes a segment on all ranks, or on none, and registers it. */
    private Windowed open(long bytes) {
      Taking taking = new Taking(bytes);
      try {
        List<byte[]> unused = agreed("gpusegment", taking::make);
        Segment taken = taking.segment();
        Windowed fresh = windowed(taken, windows.registerInTurn(taken.memory(), deadline));
        keep(fresh);
        return fresh;
      } catch (Refusal e) {
        taking.giveUp().ifPresent(arena::giveBack);
        throw e;
      } catch (RuntimeException | Error e) {
        // The caller breaks the communicator; another rank may have mapped the segment.
        taking.giveUp().ifPresent(arena::drop);
        throw e;
      }
    }

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

    private Windowed windowed(Segment segment, Registration registered) {
      CollectiveException refusal = registered.refusal();
      if (refusal != null && refusal.kind() != Kind.INVALID) {
        throw refusal;
      }
      Optional<DeviceWindow> window = Optional.ofNullable(registered.window());
      Optional<String> whyNot = registered.whyNoWindow();
      if (whyNot.isEmpty()) {
        arena.registered();
      } else if (LOGGED.add(whyNot.get())) {
        LOG.warn(
            "{} uses NCCL's own buffers beside those of its GPU: {}", communicator, whyNot.get());
      }
      return new Windowed(segment, new OffsetLedger(segment.bytes()), window, whyNot);
    }

    private AllocatedBuffer allocated(
        Windowed segment, long offset, long bytes, DataType type, long count) {
      AllocatedBuffer made =
          new AllocatedBuffer(communicator, segment, next++, offset, bytes, type, count);
      synchronized (DeviceBuffers.this) {
        requireOpen();
        allocated.put(made.number(), made);
      }
      NcclEngineLane side = communicator.side(true);
      long address = segment.segment.memory().address() + offset;
      communicator.run(side, "zeroing", () -> side.engine().clear(address, bytes, deadline));
      return made;
    }
  }

  /** Takes a segment on the engine's thread, because the driver may wait for running work. */
  private final class Taking {
    private final long bytes;
    private Segment segment;
    private CollectiveException refusal;
    private boolean givenUp;

    Taking(long bytes) {
      this.bytes = bytes;
    }

    byte[] make() {
      communicator.run(communicator.side(true), "allocating", this::take);
      synchronized (this) {
        if (refusal != null) {
          throw refusal;
        }
      }
      return new byte[0];
    }

    private void take() {
      try {
        Segment taken = arena.take(bytes);
        if (!isWanted(taken)) {
          arena.drop(taken);
        }
      } catch (RuntimeException e) {
        int rank = communicator.rank();
        synchronized (this) {
          refusal =
              RankRefusal.of(
                  List.of(rank), "rank %d has no memory: %s".formatted(rank, e.getMessage()), e);
        }
      }
    }

    private synchronized boolean isWanted(Segment taken) {
      if (!givenUp) {
        segment = taken;
      }
      return !givenUp;
    }

    synchronized Segment segment() {
      return segment;
    }

    /** A segment that comes later is dropped. */
    synchronized Optional<Segment> giveUp() {
      givenUp = true;
      return Optional.ofNullable(segment);
    }
  }
}
