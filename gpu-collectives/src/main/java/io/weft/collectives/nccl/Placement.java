package io.weft.collectives.nccl;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllGather;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.AllToAll;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.operation.Gather;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.operation.Receive;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.collectives.operation.Scatter;
import io.weft.collectives.operation.Send;
import java.util.List;

/**
 * The buffers of an operation that one rank reads and writes.
 *
 * @param read buffers whose content must be on the device before the operation
 * @param write buffers whose content changes
 */
record Placement(List<TypedBuffer> read, List<TypedBuffer> write) {
  static Placement of(Operation operation, int rank) {
    if (operation instanceof Reduce each) {
      return rooted(each.send(), each.receive(), rank, each.root());
    }
    if (operation instanceof Gather each) {
      return rooted(each.send(), each.receive(), rank, each.root());
    }
    if (operation instanceof Broadcast each) {
      return new Placement(
          rank == each.root() ? List.of(each.send()) : List.of(), List.of(each.receive()));
    }
    if (operation instanceof Scatter each) {
      return new Placement(
          rank == each.root() ? List.of(each.send()) : List.of(), List.of(each.receive()));
    }
    if (operation instanceof RaggedAllToAll each) {
      // Rows that no update covers keep their content.
      return new Placement(List.of(each.send(), each.receive()), List.of(each.receive()));
    }
    return unrooted(operation);
  }

  private static Placement rooted(TypedBuffer send, TypedBuffer receive, int rank, int root) {
    return new Placement(List.of(send), rank == root ? List.of(receive) : List.of());
  }

  private static Placement unrooted(Operation operation) {
    if (operation instanceof AllReduce each) {
      return new Placement(List.of(each.send()), List.of(each.receive()));
    }
    if (operation instanceof AllGather each) {
      return new Placement(List.of(each.send()), List.of(each.receive()));
    }
    if (operation instanceof ReduceScatter each) {
      return new Placement(List.of(each.send()), List.of(each.receive()));
    }
    if (operation instanceof AllToAll each) {
      return new Placement(List.of(each.send()), List.of(each.receive()));
    }
    if (operation instanceof Send each) {
      return new Placement(List.of(each.buffer()), List.of());
    }
    if (operation instanceof Receive each) {
      return new Placement(List.of(), List.of(each.buffer()));
    }
    return new Placement(List.of(), List.of());
  }
}
