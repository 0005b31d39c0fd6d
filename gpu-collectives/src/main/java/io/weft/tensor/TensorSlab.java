package io.weft.tensor;

import io.weft.collectives.TypedBuffer;

/**
 * Memory for many tensors that arrive one after the other. Small tensors share a block, larger ones
 * get a block each. These tensors are not closed; the collector frees a block with its last tensor.
 * A block is small, so that one retained tensor keeps little other memory. Used by one thread.
 */
public final class TensorSlab {
  private static final int BLOCK_BYTES = 64 << 10;
  private static final int MAX_SHARED = 8 << 10;
  private static final int ALIGNMENT = 16;

  private HostBlock block;
  private long used;

  /** A tensor of zeros; the shared one for the shape [0]. */
  public Tensor allocate(TensorType type) {
    if (type.rank() == 1 && type.elements() == 0) {
      return Tensor.empty(type.dtype());
    }
    if (type.elements() == 0 || type.bytes() > MAX_SHARED) {
      return Tensor.allocate(type);
    }
    if (block == null || BLOCK_BYTES - used < type.bytes()) {
      block = HostBlock.allocate(BLOCK_BYTES);
      used = 0;
    }
    Tensor tensor = Tensor.of(type, TypedBuffer.of(block, used, type.dtype(), type.elements()));
    used += (type.bytes() + ALIGNMENT - 1) & -ALIGNMENT;
    return tensor;
  }
}
