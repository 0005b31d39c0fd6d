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

/**
 * One wave of arrays that go through pinned memory, in both directions. Confined to the thread of
 * its wire.
 */
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

  /** The waves of two lists of arrays, as many of both directions in each as there are. */
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
   * Takes pinned memory.
   *
   * @throws IllegalStateException when there is not enough of it; nothing is taken then
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

  /** Enqueues the copies of what is sent. */
  void copyOut(CudaStream stream) {
    for (int i = 0; i < sends.size(); i++) {
      TypedBuffer array = sends.get(i);
      stream.copyToHost(out.get(i).address(), array.address(), array.bytes());
    }
    copied = stream.mark();
  }

  /** One piece of pinned memory for all arrays of a direction. */
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

  /** In pinned memory, once the copies are done. */
  List<TypedBuffer> out() {
    return out;
  }

  /** In pinned memory, for what arrives. */
  List<TypedBuffer> in() {
    return in;
  }

  /** Enqueues the copies of what has arrived. */
  void copyIn(CudaStream stream) {
    forgetMark();
    for (int i = 0; i < receives.size(); i++) {
      TypedBuffer array = receives.get(i);
      stream.copyToDevice(array.address(), in.get(i).address(), array.bytes());
    }
    copied = stream.mark();
  }

  /** Whether what was enqueued last is done. */
  boolean isCopied() {
    return copied.isReached();
  }

  private void forgetMark() {
    if (copied != null) {
      copied.close();
      copied = null;
    }
  }

  /** Gives the pinned memory back, which nothing uses any more. */
  void release() {
    forgetMark();
    memories.forEach(CudaMemory::close);
    memories.clear();
  }

  /** Keeps the memory of the GPU until the stream, which may still copy, has come to rest. */
  void keepUntil(Event rest) {
    sends.forEach(array -> array.owner().usedUntil(rest));
    receives.forEach(array -> array.owner().usedUntil(rest));
  }
}
