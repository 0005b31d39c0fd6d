package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * The root receives the elements that all ranks send, in rank order. In place when the root's send
 * buffer is its own part of its receive buffer.
 *
 * @param send the same number of elements on every rank
 * @param receive nranks times the elements of {@code send}; only the root's buffer is written,
 *     other ranks may pass an empty one
 */
public record Gather(TypedBuffer send, TypedBuffer receive, int root) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.GATHER;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), send.type(), root, send.count());
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
    return new Gather(replacement.apply(send), replacement.apply(receive), root);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.rank(kind(), "root", root, nranks);
    if (rank == root) {
      Checks.sameType(kind(), send, receive);
      Checks.count(kind(), "receive", receive, Math.multiplyExact(send.count(), (long) nranks));
      Checks.apartOrAt(kind(), send, receive, rank * send.count());
    }
  }
}
