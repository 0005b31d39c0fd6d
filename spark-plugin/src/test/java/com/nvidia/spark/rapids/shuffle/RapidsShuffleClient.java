package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.ShuffleReceivedBufferCatalog;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import scala.jdk.javaapi.CollectionConverters;

/** Fetches tables of one server. */
public class RapidsShuffleClient implements AutoCloseable {
  private final ClientConnection connection;
  private final RapidsShuffleTransport transport;
  private final Executor executor;
  private final Executor copies;
  private final Set<RapidsShuffleFetchHandler> live = ConcurrentHashMap.newKeySet();

  public RapidsShuffleClient(
      ClientConnection connection,
      RapidsShuffleTransport transport,
      Executor executor,
      Executor copies,
      ShuffleReceivedBufferCatalog catalog) {
    this.connection = connection;
    this.transport = transport;
    this.executor = executor;
    this.copies = copies;
    connection.registerReceiveHandler(MessageType.Buffer());
  }

  public static ShuffleReceivedBufferCatalog $lessinit$greater$default$5() {
    return null;
  }

  public ClientConnection connection() {
    return connection;
  }

  /** Requests tables by their ids. */
  public void fetch(List<Integer> ids, RapidsShuffleFetchHandler handler) {
    live.add(handler);
    ByteBuffer request = ByteBuffer.allocateDirect(4 * ids.size());
    ids.forEach(request::putInt);
    connection.request(
        MessageType.MetadataRequest(),
        request.flip(),
        transaction -> executor.execute(() -> metadata(transaction, handler)));
  }

  private void metadata(Transaction transaction, RapidsShuffleFetchHandler handler) {
    try (transaction) {
      if (!transaction.getStatus().equals(TransactionStatus.Success())) {
        handler.transferError(transaction.getErrorMessage().get(), null);
        return;
      }
      List<PendingTransferRequest> pending = new ArrayList<>();
      try (MetadataTransportBuffer message = transaction.releaseMessage()) {
        ByteBuffer bytes = message.getBuffer();
        handler.start(bytes.remaining() / 12);
        while (bytes.hasRemaining()) {
          FakeTable.Meta meta = new FakeTable.Meta(bytes.getInt(), bytes.getLong());
          if (meta.bytes > 0) {
            pending.add(new PendingTransferRequest(this, meta, handler));
          } else {
            handler.batchReceived(FakeTable.arrived(meta.id, new byte[0]));
          }
        }
      }
      if (!pending.isEmpty()) {
        transport.queuePending(CollectionConverters.asScala(pending).toList());
      }
    } catch (RuntimeException e) {
      handler.transferError("metadata: " + e, e);
    }
  }

  public void issueBufferReceives(BufferReceiveState state) {
    ByteBuffer request = ByteBuffer.allocateDirect(8 + 4 * state.requests().size());
    request.putLong(state.id());
    state.requests().forEach(each -> request.putInt(each.id()));
    connection.request(
        MessageType.TransferRequest(),
        request.flip(),
        transaction -> {
          try (transaction) {
            if (transaction.getStatus().equals(TransactionStatus.Success())) {
              transaction.releaseMessage().close();
            } else {
              state.errorOccurred(transaction.getErrorMessage().get(), null);
            }
          }
        });
  }

  public void handleBufferReceive(Transaction transaction, BufferReceiveState state) {
    copies.execute(() -> received(transaction, state));
  }

  private void received(Transaction transaction, BufferReceiveState state) {
    try (transaction) {
      if (!transaction.getStatus().equals(TransactionStatus.Success())) {
        throw new IllegalStateException(transaction.getErrorMessage().get());
      }
      int first = state.consumed();
      List<FakeTable> whole = state.consume();
      for (int i = 0; i < whole.size(); i++) {
        state.handler(first + i).batchReceived(whole.get(i));
        transport.doneBytesInFlight(whole.get(i).bytes);
      }
      if (!state.hasMore()) {
        state.close();
      }
    } catch (RuntimeException e) {
      state.errorOccurred(e.getMessage(), e);
      state.close();
    }
  }

  /** The task has ended. */
  public void forget(RapidsShuffleFetchHandler handler) {
    live.remove(handler);
    transport.cancelPending(handler);
  }

  @Override
  public void close() {
    for (RapidsShuffleFetchHandler handler : live) {
      handler.transferError("Connection to " + connection.getPeerExecutorId() + " closed", null);
    }
    live.clear();
  }
}
