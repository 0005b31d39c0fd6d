package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.channel.unix.IntegerUnixChannelOption;
import io.weft.shuffle.net.InPlaceReads.LowWaterMark;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.network.util.IOMode;
import org.apache.spark.network.util.NettyUtils;
import org.junit.jupiter.api.Test;

/** The low-water mark of a connection, read back from the kernel. */
class LowWaterMarkTest {
  private static final IntegerUnixChannelOption SO_RCVLOWAT =
      new IntegerUnixChannelOption("test.SO_RCVLOWAT", 1, 18);

  private interface Use {
    void with(Channel channel) throws Exception;
  }

  private static void connected(IOMode mode, Class<? extends Channel> kind, Use use)
      throws Exception {
    EventLoopGroup loops = NettyUtils.createEventLoop(mode, 1, "low-water");
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Channel channel =
          new Bootstrap()
              .group(loops)
              .channel(kind)
              .handler(new ChannelInboundHandlerAdapter())
              .connect(server.getLocalSocketAddress())
              .sync()
              .channel();
      use.with(channel);
      channel.close().sync();
    } finally {
      loops.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
    }
  }

  private final AtomicLong nanos = new AtomicLong();

  private LowWaterMark mark(Channel channel) {
    return new LowWaterMark(channel, nanos::get);
  }

  private static int kernels(Channel channel) {
    return channel.config().getOption(SO_RCVLOWAT);
  }

  @Test
  void theMarkIsSetWhileEnoughBytesAreCertainToComeFast() throws Exception {
    assumeTrue(Epoll.isAvailable(), "Netty has no epoll here");
    connected(
        IOMode.EPOLL,
        EpollSocketChannel.class,
        channel -> {
          LowWaterMark mark = mark(channel);
          mark.arrived(LowWaterMark.BYTES - 1, Long.MAX_VALUE);
          assertThat(kernels(channel)).as("before its speed is known").isEqualTo(1);
          mark.arrived(1, LowWaterMark.BYTES);
          assertThat(kernels(channel)).isEqualTo(LowWaterMark.BYTES);
          mark.arrived(1, LowWaterMark.BYTES - 1);
          assertThat(kernels(channel)).as("the end of a stream").isEqualTo(1);
          mark.arrived(1, Long.MAX_VALUE);
          assertThat(kernels(channel)).as("the next stream").isEqualTo(LowWaterMark.BYTES);
          mark.arrived(0, 0);
          assertThat(kernels(channel)).isEqualTo(1);
        });
  }

  @Test
  void aSlowConnectionWakesForAnyByte() throws Exception {
    assumeTrue(Epoll.isAvailable(), "Netty has no epoll here");
    connected(
        IOMode.EPOLL,
        EpollSocketChannel.class,
        channel -> {
          LowWaterMark mark = mark(channel);
          mark.arrived(LowWaterMark.BYTES, Long.MAX_VALUE);
          assertThat(kernels(channel)).isEqualTo(LowWaterMark.BYTES);
          nanos.addAndGet(LowWaterMark.FAST_NANOS);
          mark.arrived(LowWaterMark.BYTES, Long.MAX_VALUE);
          assertThat(kernels(channel)).isEqualTo(1);
          nanos.addAndGet(LowWaterMark.FAST_NANOS - 1);
          mark.arrived(LowWaterMark.BYTES, Long.MAX_VALUE);
          assertThat(kernels(channel)).as("fast again").isEqualTo(LowWaterMark.BYTES);
        });
  }

  @Test
  void aConnectionThatHasEndedIsNoError() throws Exception {
    assumeTrue(Epoll.isAvailable(), "Netty has no epoll here");
    connected(
        IOMode.EPOLL,
        EpollSocketChannel.class,
        channel -> {
          channel.close().sync();
          LowWaterMark mark = mark(channel);
          mark.arrived(LowWaterMark.BYTES, Long.MAX_VALUE);
          mark.arrived(0, 0);
          assertThat(channel.isOpen()).isFalse();
        });
  }

  @Test
  void withoutEpollNoOptionIsSet() throws Exception {
    connected(
        IOMode.NIO,
        NioSocketChannel.class,
        channel -> {
          mark(channel).arrived(LowWaterMark.BYTES, Long.MAX_VALUE);
          assertThat(channel.config().getOption(SO_RCVLOWAT)).isNull();
        });
  }
}
