package io.weft.crosshost.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMark;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.util.ArrayList;
import java.util.List;

/** One wave of arrays through pinned memory, in both directions. Used by the thread of its wire. */
final class StagedWave {
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
    List<List<TypedBuffer>> there = Waves.of(sends, bytes);
    List<List<TypedBuffer>> back = Waves.of(receives, bytes);
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
