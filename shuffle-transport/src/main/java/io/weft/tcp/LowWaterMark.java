package io.weft.tcp;

import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelOption;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.unix.IntegerUnixChannelOption;
import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * Lets the kernel wake the event loop of a connection only when many bytes of a stream have come
 * ({@code SO_RCVLOWAT}), and not for every packet: waking a thread on another processor is paid by
 * the sender, and on virtual machines it costs more than the copy of the packet.
 *
 * <p>The mark delays nothing but the bytes before it: only what is sure to come is waited for, and
 * only on a connection that has just been fast, so that bytes on a slow one still count as progress
 * when they come. The end of the connection wakes in any case. Nothing is done where Netty does not
 * use epoll or the kernel refuses. One for each connection, for its event loop.
 */
final class LowWaterMark {
  /** Half a processor's second-level cache; waiting for more wins nothing that can be measured. */
  static final int BYTES = 256 << 10;

  /** A connection is fast that brings {@link #BYTES} in this time. */
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
   * No mark yet.
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
   * Bytes of a stream have come.
   *
   * @param arrived how many, 0 or more
   * @param left how many more of it will come, whatever else happens on the connection
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
        // The kernel refuses, or the connection has ended, of which its streams hear.
        supported = false;
      }
    }
  }
}
