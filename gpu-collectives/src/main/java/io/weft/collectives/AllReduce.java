package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Every rank receives the reduction of the elements that all ranks send. In place when both buffers
 * are the same.
 *
 * @param send the same number of elements on every rank
 * @param receive as many elements as {@code send}
 */
public record AllReduce(TypedBuffer send, TypedBuffer receive, ReduceOp op) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.ALL_REDUCE;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), send.type(), op, -1, send.count());
  }

  @Override
  public long bytes() {
    return send.bytes();
  }

  @Override
  public List<TypedBuffer> buffers() {
    return List.of(send, receive);
  }

  @Override
  public Operation withBuffers(UnaryOperator<TypedBuffer> replacement) {
    return new AllReduce(replacement.apply(send), replacement.apply(receive), op);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.sameType(kind(), send, receive);
    Checks.count(kind(), "receive", receive, send.count());
    Checks.apartOrAt(kind(), send, receive, 0);
  }
}
