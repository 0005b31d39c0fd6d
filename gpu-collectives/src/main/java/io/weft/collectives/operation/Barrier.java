package io.weft.collectives.operation;

import io.weft.collectives.buffer.TypedBuffer;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * No rank leaves before every rank has come. What a rank wrote to symmetric memory before is
 * visible to all after it.
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
    // Nothing to be wrong: there are no arguments.
  }
}
