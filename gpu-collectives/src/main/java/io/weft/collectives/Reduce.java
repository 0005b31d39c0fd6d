package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * The root receives the reduction of the elements that all ranks send. In place when the root's two
 * buffers are the same.
 *
 * @param send the same number of elements on every rank
 * @param receive as many elements as {@code send}; only the root's buffer is written, other ranks
 *     may pass an empty one
 */
public record Reduce(TypedBuffer send, TypedBuffer receive, ReduceOp op, int root)
    implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.REDUCE;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), send.type(), op, root, send.count());
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
    return new Reduce(replacement.apply(send), replacement.apply(receive), op, root);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.rank(kind(), "root", root, nranks);
    if (rank == root) {
      Checks.sameType(kind(), send, receive);
      Checks.count(kind(), "receive", receive, send.count());
      Checks.apartOrAt(kind(), send, receive, 0);
    }
  }
}
