package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Rank r receives part r of the root's elements. In place when the root's receive buffer is its own
 * part of its send buffer.
 *
 * @param send nranks times the elements of {@code receive}; only the root's buffer is read, other
 *     ranks may pass an empty one
 * @param receive the same number of elements on every rank
 */
public record Scatter(TypedBuffer send, TypedBuffer receive, int root) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.SCATTER;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), receive.type(), root, receive.count());
  }

  @Override
  public long bytes() {
    return receive.bytes();
  }

  @Override
  public List<TypedBuffer> buffers() {
    return List.of(send, receive);
  }

  @Override
  public Operation withBuffers(UnaryOperator<TypedBuffer> replacement) {
    return new Scatter(replacement.apply(send), replacement.apply(receive), root);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.rank(kind(), "root", root, nranks);
    if (rank == root) {
      Checks.sameType(kind(), send, receive);
      Checks.count(kind(), "send", send, Math.multiplyExact(receive.count(), (long) nranks));
      Checks.apartOrAt(kind(), receive, send, rank * receive.count());
    }
  }
}
