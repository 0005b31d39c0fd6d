package com.nvidia.spark.rapids.shuffle;

import ai.rapids.cudf.Cuda;
import io.weft.testgpus.DeviceBytes;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import scala.Function0;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** The receive of tables, one bounce buffer after the other. */
public class BufferReceiveState implements AutoCloseable {
  private final long id;
  private final BounceBuffer bounce;
  private final List<PendingTransferRequest> requests;
  private final Function0<BoxedUnit> onClose;
  private final TransportBuffer buffer;
  private final Deque<Function1<TransportBuffer, BoxedUnit>> deferred = new ArrayDeque<>();
  private int toConsume;
  private int table;
  private byte[] content;
  private int at;

  public BufferReceiveState(
      long id,
      BounceBuffer bounce,
      Seq<PendingTransferRequest> requests,
      Function0<BoxedUnit> onClose,
      Cuda.Stream stream) {
    this.id = id;
    this.bounce = bounce;
    this.requests = new ArrayList<>(CollectionConverters.asJava(requests));
    this.onClose = onClose;
    this.buffer =
        new TransportBuffer() {
          @Override
          public long getAddress() {
            return bounce.buffer().getAddress();
          }

          @Override
          public long getLength() {
            return bounce.buffer().getLength();
          }

          @Override
          public void close() {}
        };
  }

  public static Cuda.Stream $lessinit$greater$default$5() {
    return null;
  }

  public long id() {
    return id;
  }

  List<PendingTransferRequest> requests() {
    return requests;
  }

  public synchronized void getBufferWhenReady(
      Function1<TransportBuffer, BoxedUnit> ready, long size) {
    if (size > buffer.getLength()) {
      throw new IllegalArgumentException("requirement failed: " + size + " bytes");
    }
    if (toConsume == 0) {
      ready.apply(buffer);
    } else {
      deferred.add(ready);
    }
    toConsume++;
  }

  /** Takes the bytes in the bounce buffer. Returns the tables that are complete with them. */
  synchronized List<FakeTable> consume() {
    toConsume--;
    List<FakeTable> whole = new ArrayList<>();
    long from = bounce.buffer().getAddress();
    long room = bounce.buffer().getLength();
    while (room > 0 && table < requests.size()) {
      PendingTransferRequest request = requests.get(table);
      if (content == null) {
        content = new byte[(int) request.getLength()];
        at = 0;
      }
      long bytes = Math.min(room, content.length - at);
      DeviceBytes.read(content, at, from, bytes);
      from += bytes;
      room -= bytes;
      at += (int) bytes;
      if (at == content.length) {
        whole.add(FakeTable.arrived(request.id(), content));
        content = null;
        table++;
      }
    }
    if (!deferred.isEmpty()) {
      deferred.remove().apply(buffer);
    }
    return whole;
  }

  RapidsShuffleFetchHandler handler(int request) {
    return requests.get(request).handler();
  }

  synchronized int consumed() {
    return table;
  }

  synchronized boolean hasMore() {
    return table < requests.size();
  }

  public synchronized void errorOccurred(String message, Throwable cause) {
    for (PendingTransferRequest request : requests.subList(table, requests.size())) {
      request.handler().transferError(message, cause);
    }
  }

  @Override
  public synchronized void close() {
    bounce.close();
    onClose.apply();
  }
}
