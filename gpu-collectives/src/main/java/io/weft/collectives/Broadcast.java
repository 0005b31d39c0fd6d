package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Every rank receives the root's elements. In place when the root's two buffers are the same.
 *
 * @param send the root's elements; only the root's buffer is read, other ranks may pass an empty
 *     one
 * @param receive as many elements on every rank
 */
public record Broadcast(TypedBuffer send, TypedBuffer receive, int root) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.BROADCAST;
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
    return new Broadcast(replacement.apply(send), replacement.apply(receive), root);
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
