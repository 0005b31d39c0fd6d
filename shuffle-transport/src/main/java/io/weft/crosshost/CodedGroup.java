package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.wire.TransferWire;
import java.util.ArrayList;
import java.util.List;

/**
 * The payload of a group with encoded transfers. Plain arrays move first, in one step. Then the
 * encoded arrays move side by side: the first chunk of each, then the second of each, and so on.
 * While chunks move, one end encodes the next ones and the other decodes the last ones. Both ends
 * know the number of chunks, and send each chunk's length before the chunk. An end that cannot
 * encode a chunk sends that instead, and only this transfer fails. Used by the lane's thread.
 */
final class CodedGroup {
  private final List<OutgoingTransfer> sends = new ArrayList<>();
  private final List<IncomingTransfer> receives = new ArrayList<>();
  private long sentBytes;
  private long receivedBytes;

  /** Takes the encoded ones of matched transfers, in the order of the peer; skips plain ones. */
  CodedGroup(List<PreparedTransfer> sends, List<PreparedTransfer> receives) {
    receives.stream()
        .filter(transfer -> !transfer.coding().isPlain())
        .forEach(transfer -> this.receives.add(new IncomingTransfer(transfer)));
    sends.stream()
        .filter(transfer -> !transfer.coding().isPlain())
        .forEach(transfer -> this.sends.add(new OutgoingTransfer(transfer)));
  }

  /**
   * Moves the plain arrays, then the encoded ones; the first chunks are encoded meanwhile. Throws
   * the wire's exceptions. After an exception only unfinished chunks use memory of the transfers,
   * and such a transfer keeps its memory until its chunk is finished.
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

  /** Moves one chunk of each transfer. Returns false if no transfer had one left. */
  private boolean moveChunks(TransferWire wire, int chunk) {
    List<OutgoingTransfer> out = sends.stream().filter(each -> each.has(chunk)).toList();
    List<IncomingTransfer> in = receives.stream().filter(each -> each.has(chunk)).toList();
    if (out.isEmpty() && in.isEmpty()) {
      return false;
    }
    out.forEach(each -> each.ready(chunk));
    List<TypedBuffer> outLengths = out.stream().map(each -> each.length(chunk)).toList();
    List<TypedBuffer> inLengths = in.stream().map(each -> each.length(chunk)).toList();
    moveTogether(wire, outLengths, inLengths);
    List<TypedBuffer> outBodies = new ArrayList<>();
    for (OutgoingTransfer each : out) {
      if (each.failed()) {
        each.stop();
      } else {
        outBodies.add(each.body(chunk));
      }
    }
    List<TypedBuffer> inBodies = new ArrayList<>();
    List<IncomingTransfer> expected = new ArrayList<>();
    for (IncomingTransfer each : in) {
      if (each.expects(chunk)) {
        expected.add(each);
        inBodies.add(each.body(chunk));
      } else {
        each.stop();
      }
    }
    moveTogether(wire, outBodies, inBodies);
    expected.forEach(each -> each.arrived(chunk));
    return true;
  }

  /** Moves a group, unless both directions are empty; both ends know that. */
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

  /** Bytes that this end sent, with headers and lengths. */
  long sentBytes() {
    return sentBytes;
  }

  /** Bytes that this end received, with headers and lengths. */
  long receivedBytes() {
    return receivedBytes;
  }
}
