package io.weft.transfers.gpu;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferWire;
import io.weft.transfers.gpu.LentSegments.Agreed;
import io.weft.transfers.gpu.LentSegments.Copy;
import io.weft.transfers.gpu.LentSegments.Lending;
import io.weft.transfers.gpu.SharedRoom.ReleasedRooms;
import io.weft.transfers.gpu.StagedWire.WaveSplitter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * A wire between two GPUs of one kernel, or two ends on one GPU, without a copy through the host.
 * The hosts exchange only messages. Both ends must use such a wire.
 *
 * <p>An array in a pool of device memory, such as a block of a shuffle, is copied once: the
 * receiver has mapped the pool's segment and copies out of it, see {@link LentSegments}. Other
 * memory cannot be mapped, because its owner could free it meanwhile, or the driver does not export
 * it. It is copied twice: the sender copies a wave into a shared room that the receiver has mapped,
 * and the receiver copies it out. The room's two slots alternate, so that one wave is copied in
 * while the other is copied out.
 */
final class IpcWire implements TransferWire {
  private static final long POLL_NANOS = 20_000;

  private final TransferWire host;
  private final BooleanSupplier isAwaited;
  private final SharedRoom room;
  private final ReleasedRooms released;
  private final Duration timeout;
  private final ByteBuffer mine = word();
  private final ByteBuffer theirs = word();

  /** Ends when the stream no longer uses the memory of failed moves. */
  private final HostEvent rest = new HostEvent("the rest of a stream of mapped transfers");

  /**
   * Creates a wire through a shared room.
   *
   * @param host moves host memory; closed with this one
   * @param isAwaited whether the other end waits for this one
   * @param room mapped by both ends; the wire takes ownership
   * @param released gets the room when the wire closes
   * @param timeout how long the GPU may take for a wave
   */
  IpcWire(
      TransferWire host,
      BooleanSupplier isAwaited,
      SharedRoom room,
      ReleasedRooms released,
      Duration timeout) {
    this.host = host;
    this.isAwaited = isAwaited;
    this.room = room;
    this.released = released;
    this.timeout = timeout;
  }

  private static ByteBuffer word() {
    return ByteBuffer.allocateDirect(Integer.BYTES).order(ByteOrder.nativeOrder());
  }

  @Override
  public List<ManifestEntry> exchange(Manifest manifest) {
    return host.exchange(manifest);
  }

  @Override
  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    if (sends.isEmpty() && receives.isEmpty()) {
      return;
    }
    Lending lending = room.segments().lend(sends);
    try {
      Agreed agreed = room.segments().agree(host, lending, receives);
      for (Copy copy : agreed.copies()) {
        room.stream().copyOnDevice(copy.to().address(), copy.from(), copy.to().bytes());
      }
      moveWaves(
          WaveSplitter.of(agreed.sends(), SharedRoom.WAVE_BYTES),
          WaveSplitter.of(agreed.receives(), SharedRoom.WAVE_BYTES));
    } catch (RuntimeException | Error e) {
      // The other end may still read what was lent, and then report success.
      keep(sends, lending.lends() ? room.left() : rest, e);
      keep(receives, rest, e);
      throw e;
    }
  }

  /** Moves all waves. When both ends have finished a wave, the slot of the previous one is free. */
  private void moveWaves(List<List<TypedBuffer>> there, List<List<TypedBuffer>> back) {
    int waves = Math.max(there.size(), back.size());
    for (int wave = 0; wave < waves; wave++) {
      long to = room.own(wave);
      for (TypedBuffer array : wave(there, wave)) {
        room.stream().copyOnDevice(to, array.address(), array.bytes());
        to += array.bytes();
      }
      sync(wave);
      long from = room.others(wave);
      for (TypedBuffer array : wave(back, wave)) {
        room.stream().copyOnDevice(array.address(), from, array.bytes());
        from += array.bytes();
      }
    }
    sync(waves);
  }

  private static List<TypedBuffer> wave(List<List<TypedBuffer>> waves, int wave) {
    return wave < waves.size() ? waves.get(wave) : List.of();
  }

  /** Waits until both ends have done everything that they have enqueued. */
  private void sync(int wave) {
    awaitCopies();
    mine.putInt(0, wave);
    host.move(
        List.of(TypedBuffer.wrap(mine, DataType.INT32)),
        List.of(TypedBuffer.wrap(theirs, DataType.INT32)));
    if (theirs.getInt(0) != wave) {
      throw new CollectiveException(
          Kind.MISMATCH,
          List.of(),
          "this end is at wave %d of a move, the other end at %d"
              .formatted(wave, theirs.getInt(0)));
    }
  }

  /** Waits for the copies. Also ends if the wire is aborted, because the GPU may hang. */
  private void awaitCopies() {
    Deadline deadline = Deadline.after(timeout);
    try (CudaMark mark = room.stream().mark()) {
      while (!mark.isReached()) {
        host.failure()
            .ifPresent(
                failure -> {
                  throw failure;
                });
        if (deadline.expired()) {
          throw new EventTimeoutException(room.stream() + " did not copy a wave in " + deadline);
        }
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
  }

  private static void keep(List<TypedBuffer> arrays, Event until, Throwable cause) {
    for (TypedBuffer array : arrays) {
      try {
        array.owner().usedUntil(until);
      } catch (RuntimeException e) {
        cause.addSuppressed(e);
      }
    }
  }

  /**
   * An end that wants segments back waits for the other end in a last round. The other end learns
   * of it only by that wait. If the wait is for a transfer, one more round does no harm.
   */
  @Override
  public boolean holdsWantedMemory() {
    LentSegments segments = room.segments();
    return segments.isWantedBack() || (segments.areTheirs() && isAwaited.getAsBoolean());
  }

  @Override
  public Optional<RuntimeException> failure() {
    return host.failure();
  }

  @Override
  public void abort(String reason) {
    host.abort(reason);
  }

  /** Waits for the stream's copies. If they do not end, their memory is never freed. */
  @Override
  public void close() {
    if (room.depart()) {
      rest.complete();
      released.add(room);
    }
    host.close();
  }
}
