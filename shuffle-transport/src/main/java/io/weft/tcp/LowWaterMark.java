package io.weft.tcp;

import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelOption;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.unix.IntegerUnixChannelOption;
import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * Lets the kernel wake a connection's event loop only after many bytes of a stream have arrived
 * ({@code SO_RCVLOWAT}), not for every packet. The sender pays for waking a thread on another
 * processor, and on virtual machines that costs more than copying the packet.
 *
 * <p>The mark is set only for bytes that are certain to come, and only on a connection that was
 * recently fast. So bytes on a slow connection still count as progress when they arrive. The end of
 * the connection wakes the event loop in any case. Does nothing if Netty does not use epoll or the
 * kernel refuses. One for each connection, for its event loop.
 */
final class LowWaterMark {
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
