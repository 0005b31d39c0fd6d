package io.weft.tcp;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.UnpooledDirectByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInboundHandler;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.util.UncheckedBooleanSupplier;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientBootstrap;
import org.apache.spark.network.util.TransportFrameDecoder;

/**
 * Lets a connection read the bytes of a stream straight into its receiver's memory: in place of the
 * buffer that Netty would take for the next read it hands out that memory. Whatever Netty reads
 * goes to the receiver at once, before it asks for the next buffer, and while a stream is arriving
 * nothing else does; so what is read next is what the receiver expects next. One for each
 * connection, for its event loop.
 */
final class InPlaceReads implements RecvByteBufAllocator {
  private final RecvByteBufAllocator usual;
  private final LowWaterMark lowWaterMark;
  private StreamReceiver receiver;

  private InPlaceReads(RecvByteBufAllocator usual, LowWaterMark lowWaterMark) {
    this.usual = usual;
    this.lowWaterMark = lowWaterMark;
  }

  /** Must come before every bootstrap that reads: a channel asks for its handle only once. */
  static final class Bootstrap implements TransportClientBootstrap {
    @Override
    public void doBootstrap(TransportClient client, Channel channel) {
      RecvByteBufAllocator usual = channel.config().getRecvByteBufAllocator();
      channel
          .config()
          .setRecvByteBufAllocator(
              new InPlaceReads(usual, new LowWaterMark(channel, System::nanoTime)));
    }
  }

  /** Those of a connection; empty where the bytes on the wire are not those of the stream. */
  static Optional<InPlaceReads> of(Channel channel) {
    return channel.config().getRecvByteBufAllocator() instanceof InPlaceReads reads
            && isPlain(channel)
        ? Optional.of(reads)
        : Optional.empty();
  }

  /**
   * Whether the decoder that finds the streams is the first to see what was read: no TLS, no
   * encryption. That of SASL begins with a decoder of the same class, under another name.
   */
  private static boolean isPlain(Channel channel) {
    for (Map.Entry<String, ChannelHandler> handler : channel.pipeline()) {
      if (handler.getValue() instanceof ChannelInboundHandler) {
        return handler.getKey().equals(TransportFrameDecoder.HANDLER_NAME);
      }
    }
    return false;
  }

  /**
   * Bytes of the receiver's stream have come, and come next until there is no more receiver.
   *
   * @param bytes that have come
   * @param left how many will come
   */
  void arriving(StreamReceiver newReceiver, long bytes, long left) {
    receiver = newReceiver;
    lowWaterMark.arrived(bytes, left);
  }

  /** The stream has ended. */
  void arrived() {
    receiver = null;
    lowWaterMark.arrived(0, 0);
  }

  @SuppressWarnings("deprecation") // Netty's channels ask for an ExtendedHandle all the same.
  @Override
  public Handle newHandle() {
    return new Room((ExtendedHandle) usual.newHandle());
  }

  /** Lends the receiver's memory for a read. */
  private final class Room extends DelegatingHandle implements ExtendedHandle {
    private final ExtendedHandle usualHandle;

    Room(ExtendedHandle usualHandle) {
      super(usualHandle);
      this.usualHandle = usualHandle;
    }

    @Override
    public ByteBuf allocate(ByteBufAllocator allocator) {
      ByteBuffer room = receiver == null ? null : receiver.room();
      return room == null
          ? usualHandle.allocate(allocator)
          : new LentBuffer(allocator, room, receiver).clear();
    }

    @Override
    public boolean continueReading(UncheckedBooleanSupplier maybeMoreData) {
      return usualHandle.continueReading(maybeMoreData);
    }
  }

  /**
   * Memory of a receiver, which gets it back when nobody reads or writes this buffer any more:
   * where a stream ends before the receiver thinks it does, the next messages lie in here as well.
   */
  private static final class LentBuffer extends UnpooledDirectByteBuf {
    private final StreamReceiver lender;

    LentBuffer(ByteBufAllocator allocator, ByteBuffer room, StreamReceiver lender) {
      super(allocator, room, room.remaining());
      this.lender = lender;
    }

    @Override
    protected void deallocate() {
      super.deallocate();
      lender.roomReturned();
    }
  }
}
