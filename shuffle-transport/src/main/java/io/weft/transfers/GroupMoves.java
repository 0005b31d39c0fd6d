package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.codec.CorruptTensorException;
import io.weft.tensor.codec.PieceDecoder;
import io.weft.tensor.codec.TensorEncoder;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Moves the payload of groups and counts it. Used by the lane's thread. */
final class GroupMoves {
  private final TransferCounters counters;

  GroupMoves(TransferCounters counters) {
    this.counters = counters;
  }

  /** Moves plain arrays, then encoded ones; encoding starts meanwhile. */
  void move(TransferWire wire, OfferMatcher.Group group) {
    CodedGroup coded = new CodedGroup(group.sends(), group.receives());
    List<TypedBuffer> sends = plain(group.sends());
    List<TypedBuffer> receives = plain(group.receives());
    coded.move(wire, sends, receives);
    counters.increment(TransferCounter.GROUPS);
    counters.add(TransferCounter.SENT, group.sends().size() - coded.failedSends());
    counters.add(TransferCounter.RECEIVED, group.receives().size() - coded.failedReceives());
    counters.add(TransferCounter.FAILED, coded.failedSends() + coded.failedReceives());
    counters.add(TransferCounter.BYTES_SENT, coded.sentBytes());
    counters.add(TransferCounter.BYTES_RECEIVED, coded.receivedBytes());
  }

  /**
   * As {@link #move}, for plain arrays behind device work: the devices enqueue the move at once.
   * Success is not known yet, so it is not counted here.
   */
  void moveBehind(TransferWire wire, OfferMatcher.Group group) {
    counters.increment(TransferCounter.GROUPS_BEHIND_DEVICES);
    List<TypedBuffer> sends = plain(group.sends());
    List<TypedBuffer> receives = plain(group.receives());
    wire.moveBehind(group.sources(), sends, receives);
    counters.increment(TransferCounter.GROUPS);
    counters.add(TransferCounter.BYTES_SENT, bytes(sends));
    counters.add(TransferCounter.BYTES_RECEIVED, bytes(receives));
  }

  private static long bytes(List<TypedBuffer> buffers) {
    return buffers.stream().mapToLong(TypedBuffer::bytes).sum();
  }

  private static List<TypedBuffer> plain(List<PreparedTransfer> transfers) {
    return transfers.stream()
        .filter(transfer -> transfer.coding().isPlain())
        .map(PreparedTransfer::buffer)
        .toList();
  }

  /**
   * The payload of a group with encoded transfers. Plain arrays move first, in one step. Then the
   * encoded arrays move side by side: the first chunk of each, then the second of each, and so on.
   * While chunks move, one end encodes the next ones and the other decodes the last ones. Both ends
   * know the number of chunks, and send each chunk's length before the chunk. An end that cannot
   * encode a chunk sends that instead, and only this transfer fails. Used by the lane's thread.
   */
  static final class CodedGroup {
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

    /** The receiving end of an encoded transfer. Used by the lane's thread. */
    static final class IncomingTransfer extends CodedTransfer<Boolean> {
      private final PieceDecoder decoder;

      IncomingTransfer(PreparedTransfer transfer) {
        super(transfer);
        this.decoder = new PieceDecoder(transfer.coding().kind(), tensor());
      }

      /**
       * Checks the length that the peer has sent for a chunk.
       *
       * @return whether a chunk follows
       * @throws CorruptTensorException if the length is invalid; then no further data of the peer
       *     can be trusted
       */
      boolean expects(int chunk) {
        long bytes = bytes(chunk);
        if (bytes == NONE) {
          fail(
              new TransferException(
                  "%s could not encode its chunk %d".formatted(transfer().peer(), chunk)));
          return false;
        }
        long limit = transfer().coding().memory(chunk).bytes();
        if (bytes < 1 || bytes > limit) {
          throw new CorruptTensorException(
              "chunk %d of the %s is to have %d bytes, of at most %d"
                  .formatted(chunk, transfer().event().what(), bytes, limit));
        }
        return true;
      }

      /** Starts to decode a chunk that has arrived. The next one arrives in the other slot. */
      void arrived(int chunk) {
        var unused = finish();
        // After a failed chunk the peer still sends the rest, which is received and ignored.
        if (!failed()) {
          TypedBuffer body = body(chunk);
          start(TransferCounter.CHUNKS_DECODED, () -> decode(chunk, body));
        }
      }

      private boolean decode(int chunk, TypedBuffer body) {
        int header = chunk == 0 ? decoder.begin(body.address(), body.bytes()) : 0;
        decoder.next(body.address() + header, body.bytes() - header);
        return true;
      }
    }

    /**
     * One end of an encoded transfer. At most one of its chunks is encoded or decoded at a time, in
     * their order. Used by the lane's thread.
     */
    abstract static class CodedTransfer<T> {
      /** The length that means that the sender could not encode the chunk and sends no more. */
      static final long NONE = -1;

      private final PreparedTransfer transfer;
      private final int chunks;
      private CompletableFuture<T> running;
      private RuntimeException failure;
      private boolean ended;

      CodedTransfer(PreparedTransfer transfer) {
        this.transfer = transfer;
        this.chunks = TransferEncoding.chunks(transfer.buffer().count());
      }

      PreparedTransfer transfer() {
        return transfer;
      }

      /** The elements at this end. */
      final Tensor tensor() {
        return Tensor.of(transfer.buffer(), transfer.buffer().count());
      }

      final boolean has(int chunk) {
        return !ended && chunk < chunks;
      }

      /** Skips the remaining chunks. */
      final void stop() {
        ended = true;
      }

      final void start(TransferCounter done, Callable<T> chunk) {
        running = transfer.coding().coders().submit(done, chunk);
      }

      /**
       * Waits for the chunk that was started last, and returns its result. Empty if no chunk was
       * started, or it failed. After a timeout the transfer fails, and keeps its memory until the
       * coder releases it.
       */
      final Optional<T> finish() {
        CompletableFuture<T> last = running;
        Duration timeout = transfer.coding().coders().timeout();
        running = null;
        boolean interrupted = false;
        try {
          while (last != null) {
            try {
              return Optional.of(last.get(timeout.toNanos(), TimeUnit.NANOSECONDS));
            } catch (InterruptedException e) {
              // The chunk's memory must stay until the chunk has ended.
              interrupted = true;
            } catch (ExecutionException e) {
              fail(e.getCause());
              last = null;
            } catch (TimeoutException e) {
              transfer.keepUntil(last);
              fail(
                  new IllegalStateException(
                      "a chunk was not encoded or decoded within "
                          + Deadline.describe(timeout.toNanos()),
                      e));
              last = null;
            }
          }
          return Optional.empty();
        } finally {
          if (interrupted) {
            Thread.currentThread().interrupt();
          }
        }
      }

      /** The first failure counts. */
      final void fail(Throwable cause) {
        if (failure == null) {
          failure =
              new TransferException(
                  transfer.event().what() + " failed: " + cause.getMessage(), cause);
        }
      }

      final boolean failed() {
        return failure != null;
      }

      /** Fails the transfer if a chunk failed. The lane does not touch the buffer afterwards. */
      final void end() {
        if (failure != null) {
          transfer.end(failure);
        }
      }

      final TypedBuffer length(int chunk) {
        return transfer.coding().length(chunk);
      }

      /** The length of a chunk, known to both ends after the lengths have moved. */
      final long bytes(int chunk) {
        return Memory.getLong(length(chunk).address());
      }

      /** The bytes of a chunk. */
      final TypedBuffer body(int chunk) {
        return transfer.coding().memory(chunk).slice(0, bytes(chunk));
      }
    }

    /** The sending end of an encoded transfer. Used by the lane's thread. */
    static final class OutgoingTransfer extends CodedTransfer<Integer> {
      /** Used by one coder at a time; a coder starts after the previous one has ended. */
      private TensorEncoder encoder;

      OutgoingTransfer(PreparedTransfer transfer) {
        super(transfer);
      }

      /** Starts to encode the first chunk. The caller must wait for its end. */
      void begin() {
        start(TransferCounter.CHUNKS_ENCODED, () -> encode(0));
      }

      /**
       * Waits for a chunk and starts to encode the next one. The slot of the next chunk is free,
       * because the previous chunk has moved.
       */
      void ready(int chunk) {
        long bytes = finish().map(Integer::longValue).orElse(NONE);
        Memory.putLong(length(chunk).address(), bytes);
        if (bytes != NONE && has(chunk + 1)) {
          start(TransferCounter.CHUNKS_ENCODED, () -> encode(chunk + 1));
        }
      }

      private int encode(int chunk) {
        if (encoder == null) {
          // A codec that scales reads all elements here, before the first chunk.
          encoder = transfer().coding().kind().codec().encoder(tensor());
        }
        TypedBuffer memory = transfer().coding().memory(chunk);
        int bytes = chunk == 0 ? encoder.next(memory.address(), memory.bytes()) : 0;
        return bytes + encoder.next(memory.address() + bytes, memory.bytes() - bytes);
      }
    }
  }
}
