package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import com.nvidia.spark.rapids.RapidsShuffleHandle;
import com.nvidia.spark.rapids.shuffle.FakeTable;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleFetchHandler;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** A task that fetches tables and keeps them. */
final class FetchTask implements RapidsShuffleFetchHandler {
  private static final int PATIENCE_SECONDS = 120;

  private final Map<Integer, byte[]> arrived = new ConcurrentHashMap<>();
  private final CompletableFuture<Void> end = new CompletableFuture<>();
  private final AtomicInteger expected = new AtomicInteger(Integer.MAX_VALUE);
  private final AtomicReference<String> error = new AtomicReference<>();
  private final Runnable atEach;

  FetchTask() {
    this(() -> {});
  }

  /** A task that does something with each table, on the thread that copied it. */
  FetchTask(Runnable atEach) {
    this.atEach = atEach;
  }

  @Override
  public void start(int expectedBatches) {
    expected.set(expectedBatches);
    endIfAll();
  }

  @Override
  public boolean batchReceived(RapidsShuffleHandle handle) {
    FakeTable table = (FakeTable) handle;
    atEach.run();
    assertThat(arrived.putIfAbsent(table.id, table.content)).isNull();
    endIfAll();
    return true;
  }

  private void endIfAll() {
    if (arrived.size() >= expected.get()) {
      end.complete(null);
    }
  }

  @Override
  public void transferError(String message, Throwable cause) {
    String text = message + (cause == null ? "" : " <- " + cause.getMessage());
    error.compareAndSet(null, text);
    end.completeExceptionally(new IllegalStateException(text));
  }

  @Override
  public long[] getTaskIds() {
    return new long[] {1};
  }

  /** Waits for all tables and returns them. */
  Map<Integer, byte[]> await() throws Exception {
    end.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    return arrived;
  }

  /** Waits for the first failure. */
  String awaitError() throws Exception {
    try {
      end.handle((done, failure) -> failure).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw new AssertionError("neither an end nor a failure", e);
    }
    assertThat(error.get()).as("a failure, with %d tables", arrived.size()).isNotNull();
    return error.get();
  }

  int size() {
    return arrived.size();
  }
}
