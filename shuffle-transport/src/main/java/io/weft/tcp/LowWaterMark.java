package io.weft.tcp;

import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelOption;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.unix.IntegerUnixChannelOption;

/**
 * Lets the kernel wake the event loop of a connection only when many bytes of a stream have come
 * ({@code SO_RCVLOWAT}), and not for every packet: waking a thread on another processor is paid by
 * the sender, and on virtual machines it costs more than the copy of the packet. Only what is sure
 * to come is waited for, so that the mark delays nothing else; the end of the connection wakes in
 * any case. It does nothing where Netty does not use epoll. One for each connection, for its event
 * loop.
 */
final class LowWaterMark {
  /** Half a processor's second-level cache; waiting for more wins nothing that can be measured. */
  static final int BYTES = 256 << 10;

  private static final int SOL_SOCKET = 1;
  private static final int SO_RCVLOWAT = 18;
  private static final int NONE = 1;
  private static final ChannelOption<Integer> OPTION =
      new IntegerUnixChannelOption("SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT);

  private final Channel channel;
  private final boolean supported;
  private int mark = NONE;

  LowWaterMark(Channel channel) {
    this.channel = channel;
    this.supported = channel instanceof EpollSocketChannel;
  }

  /**
   * So many bytes are still to come, whatever else happens on the connection.
   *
   * @param bytes 0 or more
   */
  void expect(long bytes) {
    int wanted = bytes < BYTES ? NONE : BYTES;
    if (supported && wanted != mark) {
      mark = wanted;
      try {
        boolean unused = channel.config().setOption(OPTION, wanted);
      } catch (ChannelException e) {
        // The connection has ended, of which its streams hear; there is nothing to wait for.
        mark = NONE;
      }
    }
  }
}
