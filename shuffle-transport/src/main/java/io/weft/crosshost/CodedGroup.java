package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.wire.TransferWire;
import java.util.ArrayList;
import java.util.List;

/**
 * The payload of a group: first what travels as it is, all at once, then what is encoded on its
 * way, side by side, the first chunk of each, the second of each, and so on. While chunks move, the
 * next ones are encoded at one end and the last ones decoded at the other. Both ends know how many
 * chunks each transfer has, and tell the bytes of each before it moves; who cannot encode a chunk
 * says so instead, and only that transfer fails. For the lane's thread.
 */
final class CodedGroup {
  private final List<OutgoingTransfer> sends = new ArrayList<>();
  private final List<IncomingTransfer> receives = new ArrayList<>();
  private long sentBytes;
  private long receivedBytes;

  /** Of transfers that both ends agree on, in the order of the peer's; plain ones are left out. */
  CodedGroup(List<PreparedTransfer> sends, List<PreparedTransfer> receives) {
    receives.stream()
        .filter(transfer -> !transfer.coding().isPlain())
        .forEach(transfer -> this.receives.add(new IncomingTransfer(transfer)));
    sends.stream()
        .filter(transfer -> !transfer.coding().isPlain())
        .forEach(transfer -> this.sends.add(new OutgoingTransfer(transfer)));
  }

  /**
   * Moves all, behind what travels as it is; the first chunks are encoded meanwhile. Throws what
   * the wire throws. Nobody uses any memory of the transfers then, but for chunks that coders did
   * not come to the end of: transfers keep theirs until they have.
   */
  void move(TransferWire wire, List<TypedBuffer> plainSends, List<TypedBuffer> plainReceives) {
    try {
      sends.forEach(OutgoingTransfer::begin);
      moveTogether(wire, plainSends, plainReceives);
      int chunk = 0;
      while (moveChunks(wire, chunk)) {
        chunk++;
      }
    } finally {
      sends.forEach(CodedTransfer::finish);
      receives.forEach(CodedTransfer::finish);
    }
    sends.forEach(CodedTransfer::end);
    receives.forEach(CodedTransfer::end);
  }

  /** Whether there was one left of any transfer. */
  private boolean moveChunks(TransferWire wire, int chunk) {
    List<OutgoingTransfer> out = sends.stream().filter(each -> each.has(chunk)).toList();
    List<IncomingTransfer> in = receives.stream().filter(each -> each.has(chunk)).toList();
    if (out.isEmpty() && in.isEmpty()) {
      return false;
    }
    out.forEach(each -> each.ready(chunk));
    List<TypedBuffer> told = out.stream().map(each -> each.length(chunk)).toList();
    List<TypedBuffer> heard = in.stream().map(each -> each.length(chunk)).toList();
    moveTogether(wire, told, heard);
    List<TypedBuffer> bodies = new ArrayList<>();
    for (OutgoingTransfer each : out) {
      if (each.failed()) {
        each.stop();
      } else {
        bodies.add(each.body(chunk));
      }
    }
    List<TypedBuffer> rooms = new ArrayList<>();
    List<IncomingTransfer> coming = new ArrayList<>();
    for (IncomingTransfer each : in) {
      if (each.expects(chunk)) {
        coming.add(each);
        rooms.add(each.body(chunk));
      } else {
        each.stop();
      }
    }
    moveTogether(wire, bodies, rooms);
    coming.forEach(each -> each.arrived(chunk));
    return true;
  }

  /** Where nothing is to move in either direction, both ends know it. */
  private void moveTogether(TransferWire wire, List<TypedBuffer> out, List<TypedBuffer> in) {
    if (!out.isEmpty() || !in.isEmpty()) {
      wire.move(out, in);
      sentBytes += bytes(out);
      receivedBytes += bytes(in);
    }
  }

  private static long bytes(List<TypedBuffer> buffers) {
    return buffers.stream().mapToLong(TypedBuffer::bytes).sum();
  }

  int failedSends() {
    return (int) sends.stream().filter(CodedTransfer::failed).count();
  }

  int failedReceives() {
    return (int) receives.stream().filter(CodedTransfer::failed).count();
  }

  /** Bytes that travelled from here, with headers and lengths. */
  long sentBytes() {
    return sentBytes;
  }

  /** Bytes that travelled to here, with headers and lengths. */
  long receivedBytes() {
    return receivedBytes;
  }
}
