package io.weft.training;

import io.weft.collectives.buffer.BufferOwner;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.symmetric.SymmetricArena;
import io.weft.collectives.symmetric.Window;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Where buckets lie. In symmetric windows an all-reduce works in place, reading and writing every
 * rank's memory; from private memory it goes through staging buffers. Used by one thread.
 */
public interface BucketMemory extends AutoCloseable {
  /**
   * Memory that lives until {@link #close}. Asked for by all ranks in the same order.
   *
   * @param bytes 1 or more
   */
  BufferOwner allocate(long bytes);

  /** Frees what was allocated; a window only after its last use. */
  @Override
  void close();

  /** Memory of this process alone. */
  static BucketMemory ofProcess() {
    return new BucketMemory() {
      private final Deque<Tensor> tensors = new ArrayDeque<>();

      @Override
      public BufferOwner allocate(long bytes) {
        Tensor tensor = Tensor.allocate(TensorType.of(DataType.INT8, bytes));
        tensors.push(tensor);
        return tensor.buffer().owner();
      }

      @Override
      public void close() {
        while (!tensors.isEmpty()) {
          tensors.pop().close();
        }
      }
    };
  }

  /**
   * Windows of an arena, which stays open for as long as the buckets are used and belongs to the
   * caller.
   */
  static BucketMemory symmetric(SymmetricArena arena) {
    return new BucketMemory() {
      private final Deque<Window> windows = new ArrayDeque<>();

      @Override
      public BufferOwner allocate(long bytes) {
        Window window = arena.window(bytes);
        windows.push(window);
        return window;
      }

      @Override
      public void close() {
        while (!windows.isEmpty()) {
          windows.pop().close();
        }
      }
    };
  }
}
