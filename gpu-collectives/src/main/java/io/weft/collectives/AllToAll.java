package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Part p of rank r's send buffer becomes part r of rank p's receive buffer. In place when both
 * buffers are the same.
 *
 * @param send nranks parts of equal length
 * @param receive as many elements as {@code send}
 */
public record AllToAll(TypedBuffer send, TypedBuffer receive) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.ALL_TO_ALL;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), send.type(), -1, send.count());
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
    return new AllToAll(replacement.apply(send), replacement.apply(receive));
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.sameType(kind(), send, receive);
    Checks.count(kind(), "receive", receive, send.count());
    if (!Division.isWhole(send.count(), nranks)) {
      throw CollectiveException.invalid(
          kind()
              + ": "
              + send.count()
              + " elements cannot be divided into "
              + nranks
              + " equal parts");
    }
    Checks.apartOrAt(kind(), send, receive, 0);
  }
}
