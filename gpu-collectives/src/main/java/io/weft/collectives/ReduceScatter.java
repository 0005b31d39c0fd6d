package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Rank r receives part r of the reduction of the elements that all ranks send. In place when the
 * receive buffer is the rank's own part of the send buffer.
 *
 * @param send nranks times the elements of {@code receive}
 * @param receive the same number of elements on every rank
 */
public record ReduceScatter(TypedBuffer send, TypedBuffer receive, ReduceOp op)
    implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.REDUCE_SCATTER;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), receive.type(), op, -1, receive.count());
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
    return new ReduceScatter(replacement.apply(send), replacement.apply(receive), op);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.sameType(kind(), send, receive);
    Checks.count(kind(), "send", send, Math.multiplyExact(receive.count(), (long) nranks));
    Checks.apartOrAt(kind(), receive, send, rank * receive.count());
  }
}
