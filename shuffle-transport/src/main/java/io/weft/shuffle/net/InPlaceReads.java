package io.weft.shuffle.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.UnpooledDirectByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInboundHandler;
import io.netty.channel.ChannelOption;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.unix.IntegerUnixChannelOption;
import io.netty.util.UncheckedBooleanSupplier;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientBootstrap;
import org.apache.spark.network.util.TransportFrameDecoder;

/**
 * Lets a connection read the bytes of a stream straight into its receiver's memory. It gives Netty
 * that memory in place of the buffer for the next read. Netty passes the bytes of a read to the
 * receiver before it asks for the next buffer. While a stream arrives, no other bytes come. So the
 * next read brings the bytes that the receiver expects next. One for each connection, for its event
 * loop.
 */
final class InPlaceReads implements RecvByteBufAllocator {
  private final RecvByteBufAllocator usual;
  private final LowWaterMark lowWaterMark;
  private StreamReceiver receiver;

  private InPlaceReads(RecvByteBufAllocator usual, LowWaterMark lowWaterMark) {
    this.usual = usual;
    this.lowWaterMark = lowWaterMark;
  }

  /**
   * Installs the allocator. Must run before every bootstrap that reads, because a channel asks for
   * its handle only once.
   */
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

  /** The allocator of a connection; empty if TLS or encryption changes the bytes on the wire. */
  static Optional<InPlaceReads> of(Channel channel) {
    return channel.config().getRecvByteBufAllocator() instanceof InPlaceReads reads
            && isPlain(channel)
        ? Optional.of(reads)
        : Optional.empty();
  }

  /**
   * Whether the frame decoder is the first inbound handler, so there is no TLS and no encryption.
   * The check is by name, because SASL encryption starts with a decoder of the same class.
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
   * Reports bytes of the receiver's stream. Until {@link #arrived} only bytes of this stream
   * follow.
   *
   * @param bytes that have arrived
   * @param left bytes of the stream that are still to come
   */
  void arriving(StreamReceiver newReceiver, long bytes, long left) {
    receiver = newReceiver;
    lowWaterMark.arrived(bytes, left);
  }

  /** Reports the end of the stream. */
  void arrived() {
    receiver = null;
    lowWaterMark.arrived(0, 0);
  }

  @SuppressWarnings("deprecation") // Netty's channels still require an ExtendedHandle.
  @Override
  public Handle newHandle() {
    return new LendingHandle((ExtendedHandle) usual.newHandle());
  }

  /** Lends the receiver's memory to a read. */
  private final class LendingHandle extends DelegatingHandle implements ExtendedHandle {
    private final ExtendedHandle usualHandle;

    LendingHandle(ExtendedHandle usualHandle) {
      super(usualHandle);
      this.usualHandle = usualHandle;
    }

    @Override
    public ByteBuf allocate(ByteBufAllocator allocator) {
      ByteBuffer memory = receiver == null ? null : receiver.lendBuffer();
      return memory == null
          ? usualHandle.allocate(allocator)
          : new LentBuffer(allocator, memory, receiver).clear();
    }

    @Override
    public boolean continueReading(UncheckedBooleanSupplier maybeMoreData) {
      return usualHandle.continueReading(maybeMoreData);
    }
  }

  /**
   * Memory of a receiver. The receiver gets it back when no thread uses this buffer any more. If a
   * stream ends early, the buffer also holds the messages that follow it.
   */
  private static final class LentBuffer extends UnpooledDirectByteBuf {
    private final StreamReceiver lender;

    LentBuffer(ByteBufAllocator allocator, ByteBuffer memory, StreamReceiver lender) {
      super(allocator, memory, memory.remaining());
      this.lender = lender;
    }

    @Override
    protected void deallocate() {
      super.deallocate();
      lender.bufferReturned();
    }
  }

  /**
   * Lets the kernel wake a connection's event loop only after many bytes of a stream have arrived
   * ({@code SO_RCVLOWAT}), not for every packet. The sender pays for waking a thread on another
   * processor, and on virtual machines that costs more than copying the packet.
   *
   * <p>The mark is set only for bytes that are certain to come, and only on a connection that was
   * recently fast. So bytes on a slow connection still count as progress when they arrive. The end
   * of the connection wakes the event loop in any case. Does nothing if Netty does not use epoll or
   * the kernel refuses. One for each connection, for its event loop.
   */
  static final class LowWaterMark {
    /** Half of a processor's L2 cache. A larger mark brings no measurable gain. */
    static final int BYTES = 256 << 10;

    /** A connection is fast if it receives {@link #BYTES} within this time. */
    static final long FAST_NANOS = Duration.ofMillis(50).toNanos();

    private static final int SOL_SOCKET = 1;
    private static final int SO_RCVLOWAT = 18;
    private static final int NONE = 1;
    private static final ChannelOption<Integer> OPTION =
        new IntegerUnixChannelOption("SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT);

    private final Channel channel;
    private final LongSupplier clock;
    private boolean supported;
    private int mark = NONE;
    private long counted;
    private long since;
    private boolean fast;

    /**
     * Starts without a mark.
     *
     * @param clock as {@link System#nanoTime()}
     */
    LowWaterMark(Channel channel, LongSupplier clock) {
      this.channel = channel;
      this.clock = clock;
      this.supported = channel instanceof EpollSocketChannel;
      this.since = clock.getAsLong();
    }

    /**
     * Reports bytes of a stream.
     *
     * @param arrived bytes that have arrived, 0 or more
     * @param left bytes of the stream that are still to come, before any other bytes
     */
    void arrived(long arrived, long left) {
      if (supported) {
        counted += arrived;
        if (counted >= BYTES) {
          long now = clock.getAsLong();
          fast = now - since < FAST_NANOS;
          since = now;
          counted = 0;
        }
        set(fast && left >= BYTES ? BYTES : NONE);
      }
    }

    private void set(int wanted) {
      if (wanted != mark) {
        mark = wanted;
        try {
          boolean unused = channel.config().setOption(OPTION, wanted);
        } catch (ChannelException e) {
          // The kernel refused, or the connection has ended, which its streams learn from Netty.
          supported = false;
        }
      }
    }
  }
}
