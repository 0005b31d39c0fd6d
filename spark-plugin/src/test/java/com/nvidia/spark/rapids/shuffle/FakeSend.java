package com.nvidia.spark.rapids.shuffle;

import ai.rapids.cudf.MemoryBuffer;
import io.weft.testgpus.DeviceBytes;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** The tables of one request on their way through one bounce buffer. */
final class FakeSend implements AutoCloseable {
  private final Transaction request;
  private final SendBounceBuffers bounce;
  private final List<FakeTable> tables = new ArrayList<>();
  private final long header;
  private int table;
  private long at;

  FakeSend(Transaction request, SendBounceBuffers bounce, RapidsShuffleRequestHandler handler) {
    this.request = request;
    this.bounce = bounce;
    try (MetadataTransportBuffer message = request.releaseMessage()) {
      ByteBuffer bytes = message.getBuffer();
      header = bytes.getLong();
      while (bytes.hasRemaining()) {
        tables.add((FakeTable) handler.getShuffleHandle(bytes.getInt()));
      }
    }
  }

  private boolean hasMore() {
    return table < tables.size();
  }

  /** Fills the bounce buffer and sends it. */
  void sendOne(RapidsShuffleServer server, ServerConnection connection) {
    MemoryBuffer all = bounce.deviceBounceBuffer().buffer();
    long filled = 0;
    while (hasMore() && filled < all.getLength()) {
      FakeTable now = tables.get(table);
      long bytes = Math.min(all.getLength() - filled, now.bytes - at);
      DeviceBytes.copy(all.getAddress() + filled, now.address + at, bytes);
      filled += bytes;
      at += bytes;
      if (at == now.bytes) {
        table++;
        at = 0;
      }
    }
    try (MemoryBuffer slice = all.slice(0, filled)) {
      connection.send(
          request.peerExecutorId(),
          MessageType.Buffer(),
          header,
          slice,
          sent -> sent(sent, server));
    }
  }

  private void sent(Transaction sent, RapidsShuffleServer server) {
    try (sent) {
      if (!sent.getStatus().equals(TransactionStatus.Success())) {
        server.ended(this);
      } else if (hasMore()) {
        server.goOn(this);
      } else {
        ByteBuffer done = ByteBuffer.allocateDirect(4).putInt(tables.size()).flip();
        request.respond(done, Transaction::close);
        server.ended(this);
      }
    }
  }

  @Override
  public void close() {
    request.close();
    bounce.close();
  }
}
