package io.weft.training;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.SymmetricBuffer;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Allocates the memory of buckets. In symmetric buffers an all-reduce works in place, and reads and
 * writes every rank's memory; from private memory it uses staging buffers. Used by one thread.
 */
public interface BucketMemory extends AutoCloseable {
  /** Symmetric buffers end below 2 GiB. */
  long LARGEST_SYMMETRIC = 1L << 30;

  /**
   * Allocates memory that lives until {@link #close}. All ranks call it in the same order.
   *
   * @param bytes 1 or more
   */
  BufferOwner allocate(long bytes);

  /** Frees all allocated memory, each buffer after its last use. */
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
   * Symmetric buffers of the communicator, for up to 1 GiB each. Between hosts, and without room,
   * they are private memory, and the log says so once.
   */
  static BucketMemory of(Communicator communicator) {
    BucketMemory ofProcess = ofProcess();
    return new BucketMemory() {
      private final Deque<SymmetricBuffer> buffers = new ArrayDeque<>();

      @Override
      public BufferOwner allocate(long bytes) {
        if (bytes > LARGEST_SYMMETRIC) {
          return ofProcess.allocate(bytes);
        }
        SymmetricBuffer buffer = communicator.symmetric(DataType.INT8, bytes);
        buffers.push(buffer);
        return buffer.elements().owner();
      }

      @Override
      public void close() {
        ofProcess.close();
        while (!buffers.isEmpty()) {
          buffers.pop().close();
        }
      }
    };
  }
}
