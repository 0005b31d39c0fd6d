package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Receives elements from one rank, which has to send exactly as many of the same type. Operations
 * with the same peer match in their order. Two ranks that both send first match only in a group.
 *
 * @param peer a rank; its own rank only within a group
 */
public record Receive(TypedBuffer buffer, int peer) implements Operation {
  @Override
  public OperationKind kind() {
    return OperationKind.RECEIVE;
  }

  @Override
  public Signature signature() {
    return Signature.of(kind(), buffer.type(), -1, buffer.count());
  }

  @Override
  public long bytes() {
    return buffer.bytes();
  }

  @Override
  public List<TypedBuffer> buffers() {
    return List.of(buffer);
  }

  @Override
  public Operation withBuffers(UnaryOperator<TypedBuffer> replacement) {
    return new Receive(replacement.apply(buffer), peer);
  }

  @Override
  public void check(int rank, int nranks) {
    Checks.rank(kind(), "peer", peer, nranks);
  }
}
