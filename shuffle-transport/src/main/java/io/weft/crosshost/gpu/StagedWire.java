package io.weft.crosshost.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Deadline;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMark;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A wire between two GPUs through memory of their hosts: what NCCL would do, where it cannot be
 * used. Arrays are copied to pinned memory and from there to the GPU, in waves of a fixed size.
 * Both ends have to use such a wire.
 */
final class StagedWire implements TransferWire {
  /** Of each direction. */
  static final long WAVE_BYTES = 8L << 20;

  private static final Logger LOG = LoggerFactory.getLogger(StagedWire.class);
  private static final Duration REST = Duration.ofSeconds(1);
  private static final long POLL_NANOS = 20_000;

  private final TransferWire host;
  private final CudaMemoryPool pinned;
  private final Duration patience;
  private final CudaStream stream;

  /** Of waves that failed, while the stream may still use it. */
  private final List<CudaMemory> kept = new ArrayList<>();

  /**
   * A wire with a stream of its own.
   *
   * @param host moves memory of the host; closed with this one
   * @param pinned for the copies
   * @param patience how long the GPU may take for a wave
   */
  StagedWire(TransferWire host, CudaDevice device, CudaMemoryPool pinned, Duration patience) {
    this.host = host;
    this.pinned = pinned;
    this.patience = patience;
    this.stream = CudaStream.open(device, "staged transfers", Lane.Priority.HIGHEST);
  }

  @Override
  public List<ManifestEntry> exchange(Manifest mine) {
    return host.exchange(mine);
  }

  @Override
  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    List<List<TypedBuffer>> there = Waves.of(sends, WAVE_BYTES);
    List<List<TypedBuffer>> back = Waves.of(receives, WAVE_BYTES);
    for (int wave = 0; wave < Math.max(there.size(), back.size()); wave++) {
      moveWave(
          wave < there.size() ? there.get(wave) : List.of(),
          wave < back.size() ? back.get(wave) : List.of());
    }
  }

  private void moveWave(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    List<CudaMemory> memories = new ArrayList<>();
    try {
      List<TypedBuffer> out = copies(sends, memories);
      List<TypedBuffer> in = copies(receives, memories);
      for (int i = 0; i < sends.size(); i++) {
        TypedBuffer array = sends.get(i);
        stream.copyToHost(out.get(i).address(), array.address(), array.bytes());
      }
      awaitStream();
      host.move(out, in);
      for (int i = 0; i < receives.size(); i++) {
        TypedBuffer array = receives.get(i);
        stream.copyToDevice(array.address(), in.get(i).address(), array.bytes());
      }
      awaitStream();
    } catch (RuntimeException | Error e) {
      kept.addAll(memories);
      throw e;
    }
    memories.forEach(CudaMemory::close);
  }

  /** One piece of pinned memory for all arrays of a wave in one direction. */
  private List<TypedBuffer> copies(List<TypedBuffer> arrays, List<CudaMemory> memories) {
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

  private void awaitStream() {
    Deadline deadline = Deadline.after(patience);
    try (CudaMark mark = stream.mark()) {
      while (!mark.isReached()) {
        if (deadline.expired()) {
          throw new EventTimeoutException(stream + " did not copy a wave within " + deadline);
        }
        LockSupport.parkNanos(POLL_NANOS);
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
    boolean rests = false;
    try {
      rests = stream.awaitRest(Deadline.after(REST));
    } catch (CudaException e) {
      LOG.warn("{} ends with a failure of the device", stream, e);
    }
    stream.close();
    if (rests) {
      kept.forEach(CudaMemory::close);
    } else if (!kept.isEmpty()) {
      LOG.warn("{} does not rest: pinned memory of {} waves is kept", stream, kept.size());
    }
    host.close();
  }
}
