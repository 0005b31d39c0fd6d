package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Every rank writes runs of rows of its own choice into the receive buffers of all ranks. Rows that
 * no run covers keep their values. Where runs overlap in one receive buffer, the result is the
 * value of any of them.
 *
 * <p>Both buffers consist of rows of {@link RaggedLayout#rowElements()} elements. Ranks may have
 * buffers of different lengths.
 *
 * @param layout the rows that this rank sends and receives
 */
public record RaggedAllToAll(TypedBuffer send, TypedBuffer receive, RaggedLayout layout)
    implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.RAGGED_ALL_TO_ALL;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), send.type(), -1, layout.rowElements());
  }

  @Override
  public long bytes() {
    return layout.sentRows() * layout.rowElements() * send.type().bytes();
  }

  @Override
  public List<TypedBuffer> buffers() {
    return List.of(send, receive);
  }

  @Override
  public Operation withBuffers(UnaryOperator<TypedBuffer> replacement) {
    return new RaggedAllToAll(replacement.apply(send), replacement.apply(receive), layout);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.sameType(kind(), send, receive);
    Checks.apart(kind(), send, receive);
    layout.check(nranks, send.count(), receive.count());
  }
}
