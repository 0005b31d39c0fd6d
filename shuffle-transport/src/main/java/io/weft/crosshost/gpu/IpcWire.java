package io.weft.crosshost.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Deadline;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMark;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * A wire between two GPUs of one kernel, or two ends on one GPU, whose memory never leaves the
 * device: the sender copies a wave into a room that the receiver has mapped, and the receiver
 * copies it out. The hosts only tell each other how far they are. The room's two slots take turns,
 * so that one wave is copied in while the next is copied out. Both ends have to use such a wire.
 *
 * <p>Why not from the sender's own memory: the other end would have to have unmapped it before its
 * owner may free it, and mapping takes longer than a copy within the device.
 */
final class IpcWire implements TransferWire {
  private static final long POLL_NANOS = 20_000;

  private final TransferWire host;
  private final SharedRoom room;
  private final DepartedRooms departed;
  private final Duration patience;
  private final ByteBuffer mine = word();
  private final ByteBuffer theirs = word();

  /** Ends when the stream does not use the memory of moves that failed any more. */
  private final HostEvent rest = new HostEvent("the rest of a stream of mapped transfers");

  /**
   * A wire through a room.
   *
   * @param host moves memory of the host; closed with this one
   * @param room that both ends have mapped; belongs to the wire from now on
   * @param departed takes the room over in the end
   * @param patience how long the GPU may take for a wave
   */
  IpcWire(TransferWire host, SharedRoom room, DepartedRooms departed, Duration patience) {
    this.host = host;
    this.room = room;
    this.departed = departed;
    this.patience = patience;
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
    try {
      moveAll(Waves.of(sends, SharedRoom.WAVE_BYTES), Waves.of(receives, SharedRoom.WAVE_BYTES));
    } catch (RuntimeException | Error e) {
      keep(sends, e);
      keep(receives, e);
      throw e;
    }
  }

  /** When both are through with a wave, the slot of the one before is free. */
  private void moveAll(List<List<TypedBuffer>> there, List<List<TypedBuffer>> back) {
    int waves = Math.max(there.size(), back.size());
    for (int wave = 0; wave < waves; wave++) {
      long to = room.own(wave);
      for (TypedBuffer array : wave(there, wave)) {
        room.stream().copyOnDevice(to, array.address(), array.bytes());
        to += array.bytes();
      }
      meet(wave);
      long from = room.others(wave);
      for (TypedBuffer array : wave(back, wave)) {
        room.stream().copyOnDevice(array.address(), from, array.bytes());
        from += array.bytes();
      }
    }
    if (waves > 0) {
      meet(waves);
    }
  }

  private static List<TypedBuffer> wave(List<List<TypedBuffer>> waves, int wave) {
    return wave < waves.size() ? waves.get(wave) : List.of();
  }

  /** Everything enqueued so far is done at both ends. */
  private void meet(int wave) {
    awaitCopies();
    mine.putInt(0, wave);
    host.move(
        List.of(TypedBuffer.wrap(mine, DataType.INT32)),
        List.of(TypedBuffer.wrap(theirs, DataType.INT32)));
    if (theirs.getInt(0) != wave) {
      throw new CollectiveException(
          Kind.MISMATCH,
          List.of(),
          "this end is at wave %d of a move, the other at %d".formatted(wave, theirs.getInt(0)));
    }
  }

  /** Ends also when the wire was aborted: the GPU may be stuck for good. */
  private void awaitCopies() {
    Deadline deadline = Deadline.after(patience);
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

  private void keep(List<TypedBuffer> arrays, Throwable cause) {
    for (TypedBuffer array : arrays) {
      try {
        array.owner().usedUntil(rest);
      } catch (RuntimeException e) {
        cause.addSuppressed(e);
      }
    }
  }

  @Override
  public Optional<RuntimeException> failure() {
    return host.failure();
  }

  @Override
  public void abort(String reason) {
    host.abort(reason);
  }

  /** Waits for what the stream still copies; memory it may go on with is kept for good. */
  @Override
  public void close() {
    if (room.depart()) {
      rest.complete();
      departed.add(room);
    }
    host.close();
  }
}
