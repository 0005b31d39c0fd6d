package io.weft.transfers;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferWire.CommunicatorWire;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;

/** A wire that counts its moves and calls the test before and after each chunk. */
final class WatchedWire implements TransferWire {
  private final CommunicatorWire wire;
  private final Watch watch;
  private final int rank;
  private int chunks;

  /** The callbacks for an end, by rank; rank 0 is executor "0". */
  static class Watch {
    final AtomicLong sentBytes = new AtomicLong();

    /** A chunk of an encoded array is about to move. */
    void before(int rank, int chunk, TypedBuffer body) {}

    /** A chunk has moved: this end has sent or received it. */
    void after(int rank, int chunk, TypedBuffer body) {}
  }

  WatchedWire(Communicator communicator, Watch watch) {
    this.wire = new CommunicatorWire(communicator);
    this.rank = communicator.rank();
    this.watch = watch;
  }

  @Override
  public List<ManifestEntry> exchange(Manifest mine) {
    return wire.exchange(mine);
  }

  @Override
  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    sends.forEach(buffer -> watch.sentBytes.addAndGet(buffer.bytes()));
    List<TypedBuffer> bodies =
        (sends.isEmpty() ? receives : sends)
            .stream().filter(buffer -> buffer.type() == DataType.INT8).toList();
    bodies.forEach(body -> watch.before(rank, chunks, body));
    wire.move(sends, receives);
    bodies.forEach(body -> watch.after(rank, chunks, body));
    chunks += bodies.isEmpty() ? 0 : 1;
  }

  @Override
  public Optional<RuntimeException> failure() {
    return wire.failure();
  }

  @Override
  public void abort(String reason) {
    wire.abort(reason);
  }

  @Override
  public void close() {
    wire.close();
  }
}
