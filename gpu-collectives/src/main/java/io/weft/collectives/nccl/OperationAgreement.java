package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.Operation;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Receive;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Checks over the host that all ranks run the same operation, while NCCL moves its data. For one
 * thread at a time, except {@link #fail}, {@link #peerFailure} and {@link #close}.
 */
final class OperationAgreement implements AutoCloseable {
  /** The signature and the number of updates. */
  private static final int SIGNATURE_LONGS = 4;

  private final Communicator host;
  private final AtomicLong waitNanos;

  OperationAgreement(Communicator host, AtomicLong waitNanos) {
    this.host = host;
    this.waitNanos = waitNanos;
  }

  Communicator host() {
    return host;
  }

  /** A message of longs, with the buffer that the host's communicator moves. */
  private record Message(LongBuffer longs, TypedBuffer buffer) {
    static Message of(int count) {
      ByteBuffer memory =
          ByteBuffer.allocateDirect(count * Long.BYTES).order(ByteOrder.nativeOrder());
      return new Message(memory.asLongBuffer(), TypedBuffer.wrap(memory, DataType.INT64));
    }

    static Message of(Signature signature, long updates) {
      Message message = of(SIGNATURE_LONGS);
      message.longs().put(0, signature.code()).put(1, signature.root());
      message.longs().put(2, signature.count()).put(3, updates);
      return message;
    }

    Signature signature(int rank) {
      int at = rank * SIGNATURE_LONGS;
      return new Signature((int) longs.get(at), (int) longs.get(at + 1), longs.get(at + 2));
    }

    long updates(int rank) {
      return longs.get(rank * SIGNATURE_LONGS + 3);
    }
  }

  /**
   * Returns once all ranks have reached this collective.
   *
   * @throws CollectiveException naming the ranks that did not arrive or run another operation
   */
  void checkCollective(Operation operation) {
    long updates =
        operation instanceof RaggedAllToAll ragged ? ragged.layout().updates(host.nranks()) : 0;
    Message mine = Message.of(operation.signature(), updates);
    Message all = Message.of(host.nranks() * SIGNATURE_LONGS);
    timed(() -> host.allGather(mine.buffer(), all.buffer()));
    for (int rank = 1; rank < host.nranks(); rank++) {
      if (!all.signature(rank).equals(all.signature(0)) || all.updates(rank) != all.updates(0)) {
        throw mismatch(0, rank, describe(all, 0), describe(all, rank));
      }
    }
  }

  private static String describe(Message all, int rank) {
    long updates = all.updates(rank);
    return "runs " + all.signature(rank) + (updates == 0 ? "" : " with " + updates + " updates");
  }

  private static CollectiveException mismatch(int first, int second, String one, String other) {
    return new CollectiveException(
        CollectiveException.Kind.MISMATCH,
        List.of(Math.min(first, second), Math.max(first, second)),
        "rank " + first + " " + one + " but rank " + second + " " + other);
  }

  /** Compares the sends of the peers with the receives of this rank, in their order. */
  void checkPairs(List<Operation> pairs) {
    List<Operation> exchange = new ArrayList<>();
    List<Receive> receives = new ArrayList<>();
    List<Message> arriving = new ArrayList<>();
    for (Operation each : pairs) {
      if (each instanceof Send send) {
        exchange.add(new Send(Message.of(signature(send.buffer()), 0).buffer(), send.peer()));
      } else if (each instanceof Receive receive) {
        Message message = Message.of(SIGNATURE_LONGS);
        exchange.add(new Receive(message.buffer(), receive.peer()));
        receives.add(receive);
        arriving.add(message);
      }
    }
    timed(() -> host.runGroup(exchange));
    for (int i = 0; i < receives.size(); i++) {
      check(receives.get(i), arriving.get(i).signature(0));
    }
  }

  /** The signature that both ends share; the signatures of send and receive themselves differ. */
  private static Signature signature(TypedBuffer buffer) {
    return new Send(buffer, 0).signature();
  }

  private void check(Receive receive, Signature sent) {
    Signature expected = signature(receive.buffer());
    if (!sent.equals(expected)) {
      String what = "receives " + receive.buffer().count() + " " + receive.buffer().type();
      throw mismatch(receive.peer(), host.rank(), "runs a " + sent, what);
    }
  }

  /**
   * Returns which rows arrive here in a ragged all-to-all, by source rank and update. Every rank
   * receives the tables of all ranks, 24 bytes for each pair of ranks and update, and so reaches
   * the same verdict.
   *
   * @return the layout of each rank, without the offsets in its own send buffer
   * @throws CollectiveException of kind MISMATCH if sizes do not match
   */
  List<RaggedLayout> exchangeLayouts(RaggedAllToAll operation) {
    RaggedLayout layout = operation.layout();
    int entries = layout.entries();
    int length = 3 * entries + 1;
    Message mine = Message.of(length);
    for (int entry = 0; entry < entries; entry++) {
      mine.longs().put(3 * entry, layout.sendSize(entry));
      mine.longs().put(3 * entry + 1, layout.targetOffset(entry));
      mine.longs().put(3 * entry + 2, layout.receiveSize(entry));
    }
    mine.longs().put(3 * entries, operation.receive().count() / layout.rowElements());
    Message all = Message.of(host.nranks() * length);
    timed(() -> host.allGather(mine.buffer(), all.buffer()));
    List<RaggedLayout> layouts = new ArrayList<>();
    for (int rank = 0; rank < host.nranks(); rank++) {
      layouts.add(layout(all, rank * length, entries, layout.rowElements()));
    }
    for (int to = 0; to < host.nranks(); to++) {
      checkArrivals(layouts, to, all.longs().get(to * length + 3 * entries));
    }
    return layouts;
  }

  private static RaggedLayout layout(Message all, int start, int entries, long rowElements) {
    long[][] columns = new long[3][entries];
    for (int entry = 0; entry < entries; entry++) {
      for (int column = 0; column < 3; column++) {
        columns[column][entry] = all.longs().get(start + 3 * entry + column);
      }
    }
    return new RaggedLayout(rowElements, new long[entries], columns[0], columns[1], columns[2]);
  }

  private void checkArrivals(List<RaggedLayout> layouts, int to, long receiveRows) {
    int nranks = host.nranks();
    for (int from = 0; from < nranks; from++) {
      RaggedLayout sent = layouts.get(from);
      int updates = sent.updates(nranks);
      for (int update = 0; update < updates; update++) {
        int entry = to * updates + update;
        long size = sent.sendSize(entry);
        layouts
            .get(to)
            .checkArrival(from, to, update, nranks, size, sent.targetOffset(entry), receiveRows);
      }
    }
  }

  private void timed(Runnable exchange) {
    long start = System.nanoTime();
    try {
      exchange.run();
    } finally {
      waitNanos.addAndGet(System.nanoTime() - start);
    }
  }

  /** Tells the other ranks that this rank has failed. Any thread may call it. */
  void fail(CollectiveException cause) {
    if (host instanceof OrderedCommunicator ordered) {
      ordered.abort(cause);
    } else {
      host.abort(String.valueOf(cause.getMessage()));
    }
  }

  /** The reason why another rank can no longer answer; empty while all ranks are well. */
  Optional<CollectiveException> peerFailure() {
    Optional<CollectiveException> own = host.failure();
    if (own.isPresent() || !(host instanceof InPlaceRegions peers)) {
      return own;
    }
    for (int rank = 0; rank < host.nranks(); rank++) {
      if (rank != host.rank() && peers.peerFailure(rank).isPresent()) {
        return peers.peerFailure(rank);
      }
    }
    return Optional.empty();
  }

  @Override
  public void close() {
    host.close();
  }
}
