package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * No rank leaves before every rank has arrived. Writes to symmetric memory before the barrier are
 * visible to all ranks after it.
 */
public record Barrier() implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.BARRIER;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind());
  }

  @Override
  public long bytes() {
    return 0;
  }

  @Override
  public List<TypedBuffer> buffers() {
    return List.of();
  }

  @Override
  public Operation withBuffers(UnaryOperator<TypedBuffer> replacement) {
    return this;
  }

  @Override
  public void check(int rank, int nranks) {
    // There are no arguments to check.
  }
}
