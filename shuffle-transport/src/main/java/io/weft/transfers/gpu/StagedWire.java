package io.weft.transfers.gpu;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferWire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A wire between two GPUs through host memory, for pairs that cannot use NCCL. Arrays are copied to
 * pinned memory, sent to the other host, and copied to its GPU, in waves of a fixed size. While one
 * wave moves between the hosts, the GPU copies the next one out or the previous one in. If pinned
 * memory is short, there is one wave at a time, and the wire waits for memory. Both ends must use
 * such a wire.
 */
final class StagedWire implements TransferWire {
  /** The size of a wave in each direction. Up to three waves have pinned memory at a time. */
  static final long WAVE_BYTES = 4L << 20;

  private static final Logger LOG = LoggerFactory.getLogger(StagedWire.class);
  private static final Duration REST = Duration.ofSeconds(30);
  private static final long POLL_NANOS = 20_000;

  private final TransferWire host;
  private final CudaMemoryPool pinned;
  private final Duration timeout;
  private final CudaStream stream;

  /** The waves of failed moves, while the stream may still use their memory. */
  private final List<StagedWave> kept = new ArrayList<>();

  /** Whether this end has given up the wire, because a copy of the GPU may hang. */
  private volatile boolean aborted;

  private final HostEvent rest = new HostEvent("the rest of a stream that stages transfers");

  /**
   * Creates a wire with its own stream.
   *
   * @param host moves host memory; closed with this one
   * @param pinned for the copies
   * @param timeout how long the GPU may take for a wave
   */
  StagedWire(TransferWire host, CudaDevice device, CudaMemoryPool pinned, Duration timeout) {
    this.host = host;
    this.pinned = pinned;
    this.timeout = timeout;
    this.stream = CudaStream.open(device, "staged transfers", Lane.Priority.HIGHEST);
  }

  @Override
  public List<ManifestEntry> exchange(Manifest mine) {
    return host.exchange(mine);
  }

  @Override
  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    List<StagedWave> waves = StagedWave.of(sends, receives, WAVE_BYTES);
    try {
      moveAll(waves);
    } catch (RuntimeException | Error e) {
      keep(waves, e);
      throw e;
    }
  }

  private void moveAll(List<StagedWave> waves) {
    int out = 0;
    int done = 0;
    for (int i = 0; i < waves.size(); i++) {
      if (out == i) {
        if (!copiesOut(waves.get(out))) {
          done = finish(waves, done, i);
          awaitMemory(waves.get(out));
        }
        out++;
      }
      if (out < waves.size() && copiesOut(waves.get(out))) {
        out++;
      }
      moveOne(waves.get(i));
      if (i + 1 < waves.size()) {
        done = finish(waves, done, i);
      }
    }
    // The data of both ends has moved: the peer may close now.
    waves.subList(done, waves.size()).forEach(this::finishLast);
  }

  private int finish(List<StagedWave> waves, int from, int to) {
    waves.subList(from, to).forEach(this::finish);
    return to;
  }

  /** Copies a wave out. Returns false if pinned memory is short. */
  private boolean copiesOut(StagedWave wave) {
    try {
      wave.take(pinned);
    } catch (IllegalStateException e) {
      return false;
    }
    wave.copyOut(stream);
    return true;
  }

  /** Copies a wave out once others have freed memory. This wire holds none meanwhile. */
  private void awaitMemory(StagedWave wave) {
    Deadline deadline = Deadline.after(timeout);
    while (!deadline.expired()) {
      requireWell();
      if (copiesOut(wave)) {
        return;
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    wave.take(pinned);
    wave.copyOut(stream);
  }

  private void requireOpen() {
    if (aborted) {
      requireWell();
    }
  }

  private void requireWell() {
    host.failure()
        .ifPresent(
            failure -> {
              throw failure;
            });
  }

  /** Moves one wave between the hosts. The GPU works on the waves around it meanwhile. */
  private void moveOne(StagedWave wave) {
    await(wave);
    host.move(wave.out(), wave.in());
    wave.copyIn(stream);
  }

  private void finish(StagedWave wave) {
    await(wave);
    wave.release();
  }

  private void finishLast(StagedWave wave) {
    await(wave, this::requireOpen);
    wave.release();
  }

  private void keep(List<StagedWave> waves, Throwable cause) {
    kept.addAll(waves);
    for (StagedWave wave : waves) {
      try {
        wave.keepUntil(rest);
      } catch (RuntimeException e) {
        cause.addSuppressed(e);
      }
    }
  }

  private void await(StagedWave wave) {
    await(wave, this::requireWell);
  }

  /** Waits for the copies. Also ends if the check throws, because the GPU may hang. */
  private void await(StagedWave wave, Runnable check) {
    Deadline deadline = Deadline.after(timeout);
    while (!wave.isCopied()) {
      check.run();
      if (deadline.expired()) {
        throw new EventTimeoutException(stream + " did not copy a wave within " + deadline);
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  @Override
  public Optional<RuntimeException> failure() {
    return host.failure();
  }

  @Override
  public void abort(String reason) {
    try {
      // First the reason, which a move throws when it sees the flag.
      host.abort(reason);
    } finally {
      aborted = true;
    }
  }

  /** Waits for the stream's copies. If they do not end, their memory is never freed. */
  @Override
  public void close() {
    if (stream.close(REST)) {
      kept.forEach(StagedWave::release);
      kept.clear();
      rest.complete();
    } else if (!kept.isEmpty()) {
      LOG.warn("{} does not become idle: the memory of {} waves is kept", stream, kept.size());
    }
    host.close();
  }

  /**
   * One wave of arrays through pinned memory, in both directions. Used by the thread of its wire.
   */
  static final class StagedWave {
    private final List<TypedBuffer> sends;
    private final List<TypedBuffer> receives;
    private final List<CudaMemory> memories = new ArrayList<>();
    private List<TypedBuffer> out = List.of();
    private List<TypedBuffer> in = List.of();
    private CudaMark copied;

    private StagedWave(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      this.sends = sends;
      this.receives = receives;
    }

    /** Cuts two lists of arrays into waves. Each wave has both directions while both have data. */
    static List<StagedWave> of(List<TypedBuffer> sends, List<TypedBuffer> receives, long bytes) {
      List<List<TypedBuffer>> there = WaveSplitter.of(sends, bytes);
      List<List<TypedBuffer>> back = WaveSplitter.of(receives, bytes);
      List<StagedWave> waves = new ArrayList<>();
      for (int wave = 0; wave < Math.max(there.size(), back.size()); wave++) {
        waves.add(
            new StagedWave(
                wave < there.size() ? there.get(wave) : List.of(),
                wave < back.size() ? back.get(wave) : List.of()));
      }
      return waves;
    }

    /**
     * Allocates pinned memory.
     *
     * @throws IllegalStateException if memory is short; then nothing is allocated
     */
    void take(CudaMemoryPool pinned) {
      try {
        out = copies(sends, pinned);
        in = copies(receives, pinned);
      } catch (RuntimeException e) {
        release();
        throw e;
      }
    }

    /** Enqueues the copies of the sends to pinned memory. */
    void copyOut(CudaStream stream) {
      for (int i = 0; i < sends.size(); i++) {
        TypedBuffer array = sends.get(i);
        stream.copyToHost(out.get(i).address(), array.address(), array.bytes());
      }
      copied = stream.mark();
    }

    /** Allocates one block of pinned memory for all arrays of a direction. */
    private List<TypedBuffer> copies(List<TypedBuffer> arrays, CudaMemoryPool pinned) {
      List<TypedBuffer> copies = new ArrayList<>();
      long bytes = arrays.stream().mapToLong(TypedBuffer::bytes).sum();
      if (bytes > 0) {
        CudaMemory memory = pinned.take(bytes);
        memories.add(memory);
        long at = memory.address();
        for (TypedBuffer array : arrays) {
          copies.add(TypedBuffer.at(at, DataType.INT8, array.bytes()));
          at += array.bytes();
        }
      }
      return copies;
    }

    /** The sends in pinned memory, valid once the copies are done. */
    List<TypedBuffer> out() {
      return out;
    }

    /** The pinned memory for the receives. */
    List<TypedBuffer> in() {
      return in;
    }

    /** Enqueues the copies of the receives to the GPU. */
    void copyIn(CudaStream stream) {
      forgetMark();
      for (int i = 0; i < receives.size(); i++) {
        TypedBuffer array = receives.get(i);
        stream.copyToDevice(array.address(), in.get(i).address(), array.bytes());
      }
      copied = stream.mark();
    }

    /** Whether the copies that were enqueued last are done. */
    boolean isCopied() {
      return copied.isReached();
    }

    private void forgetMark() {
      if (copied != null) {
        copied.close();
        copied = null;
      }
    }

    /** Frees the pinned memory. The caller makes sure that it is not in use. */
    void release() {
      forgetMark();
      memories.forEach(CudaMemory::close);
      memories.clear();
    }

    /** Keeps the GPU memory of the arrays until the stream, which may still copy, is idle. */
    void keepUntil(Event rest) {
      sends.forEach(array -> array.owner().usedUntil(rest));
      receives.forEach(array -> array.owner().usedUntil(rest));
    }
  }

  /**
   * Cuts a list of arrays, as bytes, into waves of a limited size, in order. Both ends of a
   * transfer cut lists of the same lengths in the same way. Stateless.
   */
  static final class WaveSplitter {
    private WaveSplitter() {}

    /** The waves; an empty list for no arrays. */
    static List<List<TypedBuffer>> of(List<TypedBuffer> arrays, long waveBytes) {
      List<List<TypedBuffer>> waves = new ArrayList<>();
      List<TypedBuffer> wave = new ArrayList<>();
      long left = waveBytes;
      for (TypedBuffer array : arrays) {
        TypedBuffer bytes = array.as(DataType.INT8);
        for (long at = 0; at < bytes.count(); ) {
          long length = Math.min(left, bytes.count() - at);
          wave.add(bytes.slice(at, length));
          at += length;
          left -= length;
          if (left == 0) {
            waves.add(wave);
            wave = new ArrayList<>();
            left = waveBytes;
          }
        }
      }
      if (!wave.isEmpty()) {
        waves.add(wave);
      }
      return waves;
    }
  }
}
