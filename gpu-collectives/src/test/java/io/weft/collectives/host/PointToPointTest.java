package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.device.Deadline;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class PointToPointTest {
  private static final int COUNT = 100;

  private final PrivateBlocks blocks = new PrivateBlocks(2, new BufferSizes(128, 128, 1024));

  private static TypedBuffer ints() {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(4 * COUNT), DataType.INT32);
  }

  private PointToPoint rank(int me, Call call, Supplier<Optional<CollectiveException>> failure) {
    LocalPeers localPeers = blocks.localPeers(me);
    HostWaitCheck watch = new HostWaitCheck(me, call, failure, localPeers, RemoteRanks.NONE, 0);
    return new PointToPoint(
        me, 2, peer -> blocks.link(me, peer), new WaitLoop(watch, localPeers.size(), false));
  }

  /** The message arrives after the receiver has polled for it and before it checks the peer. */
  @Test
  void messageSentJustBeforeThePeerClosedIsReceived() {
    TypedBuffer sent = ints();
    TypedBuffer received = ints();
    Values.fill(sent, 1);
    Signature signature = new Send(sent, 0).signature();
    Call call = new Call();
    call.start(signature, 0, Deadline.after(Duration.ofSeconds(60)));
    PointToPoint sender = rank(1, call, Optional::empty);
    AtomicInteger looks = new AtomicInteger();
    PointToPoint receiver =
        rank(
            0,
            call,
            () -> {
              if (looks.getAndIncrement() == 0) {
                sender.send(signature, 0, 0, sent.address(), sent.bytes());
                sender.finish();
                blocks.block(1).close();
              }
              return Optional.empty();
            });
    receiver.receive(signature, 0, 1, received.address(), received.bytes());
    receiver.finish();
    assertThat(looks).hasPositiveValue();
    Values.check("received", received, i -> Values.of(1, i));
  }
}
