package io.weft.training;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.DataType;
import io.weft.collectives.symmetric.SymmetricArena;
import io.weft.collectives.symmetric.Window;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Allocates the memory of buckets. In symmetric windows an all-reduce works in place, and reads and
 * writes every rank's memory; from private memory it uses staging buffers. Used by one thread.
 */
public interface BucketMemory extends AutoCloseable {
  /**
   * Allocates memory that lives until {@link #close}. All ranks call it in the same order.
   *
   * @param bytes 1 or more
   */
  BufferOwner allocate(long bytes);

  /** Frees all allocated memory; a window only after its last use. */
  @Override
  void close();

  /** Memory of this process only. */
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
   * Windows of an arena, which belongs to the caller and must stay open as long as the buckets are
   * used.
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
