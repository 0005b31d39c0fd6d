package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.spark.rapids.ControlMessage.BootstrapRound;
import io.weft.spark.rapids.DataLane.BlockMove;
import io.weft.spark.rapids.LaneSet.LaneParts;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferWire;
import io.weft.transfers.TransferWire.CommunicatorWire;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Both ends of a lane, over communicators of the host. */
class DataLaneTest {
  private static final int BYTES = 100;
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  @TempDir Path folder;

  /** Blocks that the server sends before its wire breaks. */
  private final AtomicInteger serverSends = new AtomicInteger(Integer.MAX_VALUE);

  private volatile DataLane client;
  private volatile DataLane server;
  private final AtomicInteger received = new AtomicInteger();
  private LaneSet clients;
  private LaneSet servers;

  private void open(Duration deadline) {
    HostCommunicators hosts =
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
    CommunicatorOptions options = CommunicatorOptions.DEFAULT.withTimeout(deadline);
    clients = new LaneSet(new LaneParts(hosts, CommunicatorWire::new, options));
    servers =
        new LaneSet(
            new LaneParts(hosts, each -> new Breaking(new CommunicatorWire(each)), options));
    client = clients.open("a client", 0, "lane-of-client", this::sendToServer);
    server = servers.open("a server", 1, "lane-of-server", message -> client.receive(message));
  }

  private void sendToServer(BootstrapRound message) {
    server.receive(message);
    received.incrementAndGet();
  }

  /** A wire that breaks after a number of blocks. */
  private final class Breaking implements TransferWire {
    private final TransferWire wire;

    Breaking(TransferWire wire) {
      this.wire = wire;
    }

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return wire.exchange(mine);
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      if (serverSends.getAndDecrement() <= 0) {
        throw new IllegalStateException("broken on purpose");
      }
      wire.move(sends, receives);
    }

    @Override
    public Optional<RuntimeException> failure() {
      return wire.failure();
    }

    @Override
    public void abort(String reason) {
      wire.abort(reason);
    }

    @Override
    public void close() {
      wire.close();
    }
  }

  @AfterEach
  void close() throws InterruptedException {
    client.close();
    server.close();
    assertThat(clients.awaitEnd(DEADLINE)).isTrue();
    assertThat(servers.awaitEnd(DEADLINE)).isTrue();
  }

  /** Moves one block. Returns the received bytes, or the failure. */
  private record Block(CompletableFuture<Void> sent, CompletableFuture<Byte> came) {}

  private Block pass(long epoch, UniqueId communicatorId, int value) {
    return pass(epoch, communicatorId, value, () -> {});
  }

  private Block pass(long epoch, UniqueId communicatorId, int value, Runnable between) {
    ByteBuffer from = ByteBuffer.allocateDirect(BYTES).put(0, (byte) value);
    ByteBuffer to = ByteBuffer.allocateDirect(BYTES);
    Block block = new Block(new CompletableFuture<>(), new CompletableFuture<>());
    client.submit(
        new BlockMove(
            epoch,
            communicatorId,
            List.of(TypedBuffer.wrap(to, DataType.INT8)),
            false,
            failure -> end(block.came(), to.get(0), failure)));
    between.run();
    server.submit(
        new BlockMove(
            epoch,
            communicatorId,
            List.of(TypedBuffer.wrap(from, DataType.INT8)),
            true,
            failure -> end(block.sent(), null, failure)));
    return block;
  }

  private static <T> void end(CompletableFuture<T> future, T value, Throwable failure) {
    if (failure == null) {
      future.complete(value);
    } else {
      future.completeExceptionally(failure);
    }
  }

  private static String failure(CompletableFuture<?> future) throws Exception {
    try {
      Object unused = future.get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
      throw new AssertionError("it passed");
    } catch (ExecutionException e) {
      return String.valueOf(e.getCause().getMessage());
    }
  }

  @Test
  void blocksPassInTheirOrder() throws Exception {
    open(DEADLINE);
    UniqueId communicatorId = UniqueId.create();
    List<Block> blocks = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      blocks.add(pass(1, communicatorId, i));
    }
    for (int i = 0; i < 50; i++) {
      assertThat(blocks.get(i).came().get(60, TimeUnit.SECONDS)).isEqualTo((byte) i);
      blocks.get(i).sent().get(60, TimeUnit.SECONDS);
    }
  }

  @Test
  void aLateEndGetsTheEarlierMessagesOfTheOther() throws Exception {
    open(DEADLINE);
    for (int epoch = 1; epoch < 4; epoch++) {
      int before = received.get();
      Block block =
          pass(
              epoch,
              UniqueId.create(),
              epoch,
              () -> await("a message").atMost(DEADLINE).until(() -> received.get() > before));
      assertThat(block.came().get(60, TimeUnit.SECONDS)).isEqualTo((byte) epoch);
    }
  }

  /** One end breaks: later blocks of that epoch fail at both ends, blocks of the next succeed. */
  @Test
  void afterAFailureBothEndsCreateANewCommunicator() throws Exception {
    open(DEADLINE);
    serverSends.set(3);
    UniqueId communicatorId = UniqueId.create();
    for (int i = 0; i < 3; i++) {
      // A block under way would be lost together with the later ones.
      assertThat(pass(1, communicatorId, i).came().get(60, TimeUnit.SECONDS)).isEqualTo((byte) i);
    }
    List<Block> lost = new ArrayList<>();
    for (int i = 3; i < 6; i++) {
      lost.add(pass(1, communicatorId, i));
    }
    for (Block block : lost) {
      assertThat(failure(block.came())).isNotEmpty();
      assertThat(failure(block.sent())).contains("broken on purpose");
    }
    assertThat(client.isOver(1)).isTrue();
    assertThat(client.isOver(2)).isFalse();
    serverSends.set(Integer.MAX_VALUE);
    assertThat(pass(2, UniqueId.create(), 77).came().get(60, TimeUnit.SECONDS))
        .isEqualTo((byte) 77);
  }

  @Test
  void closingAnEndEndsItsWaitForTheOther() throws Exception {
    open(DEADLINE);
    CompletableFuture<Void> waits = new CompletableFuture<>();
    client.submit(
        new BlockMove(
            1,
            UniqueId.create(),
            List.of(TypedBuffer.wrap(ByteBuffer.allocateDirect(BYTES), DataType.INT8)),
            false,
            failure -> end(waits, null, failure)));
    client.close("the peer was killed");
    assertThat(failure(waits)).contains("the peer was killed");
  }

  @Test
  void anEndWithoutItsPeerFailsAtTheDeadline() throws Exception {
    open(Duration.ofMillis(300));
    CompletableFuture<Void> waits = new CompletableFuture<>();
    client.submit(
        new BlockMove(
            1,
            UniqueId.create(),
            List.of(TypedBuffer.wrap(ByteBuffer.allocateDirect(BYTES), DataType.INT8)),
            false,
            failure -> end(waits, null, failure)));
    assertThat(failure(waits)).contains("a client").contains("did not answer");
  }
}
