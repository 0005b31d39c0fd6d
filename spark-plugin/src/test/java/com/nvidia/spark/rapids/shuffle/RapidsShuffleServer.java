package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.RapidsConf;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** Serves tables: one loop waits for bounce buffers and fills them. */
public class RapidsShuffleServer implements AutoCloseable {
  private final RapidsShuffleTransport transport;
  private final ServerConnection connection;
  private final BlockManagerId id;
  private final RapidsShuffleRequestHandler handler;
  private final Executor executor;
  private final Deque<Transaction> requested = new ArrayDeque<>();
  private final Deque<FakeSend> going = new ArrayDeque<>();
  private boolean started = true;
  private int port = -1;

  public RapidsShuffleServer(
      RapidsShuffleTransport transport,
      ServerConnection connection,
      BlockManagerId id,
      RapidsShuffleRequestHandler handler,
      Executor executor,
      Executor sends,
      RapidsConf conf) {
    this.transport = transport;
    this.connection = connection;
    this.id = id;
    this.handler = handler;
    this.executor = executor;
    sends.execute(this::loop);
  }

  public void start() {
    port = connection.startManagementPort(id.host());
    connection.registerRequestHandler(
        MessageType.MetadataRequest(), each -> executor.execute(() -> metadata(each)));
    connection.registerRequestHandler(MessageType.TransferRequest(), this::transfer);
  }

  public BlockManagerId getId() {
    return BlockManagerId.apply(
        id.executorId(), id.host(), id.port(), Option.apply("rapids=" + port));
  }

  private void metadata(Transaction transaction) {
    try (transaction;
        MetadataTransportBuffer message = transaction.releaseMessage()) {
      ByteBuffer ids = message.getBuffer();
      ByteBuffer answer = ByteBuffer.allocateDirect(3 * ids.remaining());
      while (ids.hasRemaining()) {
        FakeTable table = (FakeTable) handler.getShuffleHandle(ids.getInt());
        answer.putInt(table.id).putLong(table.bytes);
      }
      transaction.respond(answer.flip(), Transaction::close);
    }
  }

  private synchronized void transfer(Transaction transaction) {
    requested.add(transaction);
    notifyAll();
  }

  synchronized void goOn(FakeSend send) {
    if (started) {
      going.add(send);
      notifyAll();
    } else {
      send.close();
    }
  }

  synchronized void ended(FakeSend send) {
    send.close();
    notifyAll();
  }

  private void loop() {
    try {
      FakeSend next = next();
      while (next != null) {
        next.sendOne(this, connection);
        next = next();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized FakeSend next() throws InterruptedException {
    while (started) {
      if (!going.isEmpty()) {
        return going.remove();
      }
      if (!requested.isEmpty()) {
        var bounce = transport.tryGetSendBounceBuffers(1, 1);
        if (bounce.nonEmpty()) {
          return new FakeSend(requested.remove(), bounce.head(), handler);
        }
      }
      wait(50);
    }
    return null;
  }

  @Override
  public synchronized void close() {
    started = false;
    going.forEach(FakeSend::close);
    going.clear();
    requested.forEach(Transaction::close);
    requested.clear();
    notifyAll();
  }
}
