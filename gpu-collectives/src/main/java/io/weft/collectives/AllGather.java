package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Every rank receives the elements that all ranks send, in rank order. In place when the send
 * buffer is the rank's own part of the receive buffer.
 *
 * @param send the same number of elements on every rank
 * @param receive nranks times the elements of {@code send}
 */
public record AllGather(TypedBuffer send, TypedBuffer receive) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.ALL_GATHER;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), send.type(), -1, send.count());
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
    return new AllGather(replacement.apply(send), replacement.apply(receive));
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.sameType(kind(), send, receive);
    Checks.count(kind(), "receive", receive, Math.multiplyExact(send.count(), (long) nranks));
    Checks.apartOrAt(kind(), send, receive, rank * send.count());
  }
}
