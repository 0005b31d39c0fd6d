package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.AdoptionAgreement.AdopterRemovedException;
import io.weft.shuffle.AdoptionAgreement.Step;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.runtime.FakeContext.Answers;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import io.weft.spark.runtime.Messages.Adoption.State;
import io.weft.spark.runtime.Messages.AskAdoption;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Option;

/** Requests to the driver are repeated when messages fail or get lost. */
@Timeout(120)
class DriverAgreementTest {
  private static final Set<BlockKey> OUTPUTS = Set.of(new BlockKey(1, 10), new BlockKey(2, 20));
  private static final Adoption DONE = Adoption.done(Map.of(1, new long[] {10}));
  private static final Adoption PENDING = Adoption.of(State.PENDING);

  private final List<Object> asked = new CopyOnWriteArrayList<>();

  private Set<BlockKey> agree(Duration timeout, Answers driver) throws Exception {
    FakeContext context =
        new FakeContext(
            request -> {
              asked.add(request);
              return driver.to(request);
            },
            List.of());
    return new DriverAgreement(
            context, () -> BlockManagerId.apply("3", "here", 7, Option.empty()), timeout)
        .agree(Step.MOVE, "1", "0000000a", OUTPUTS);
  }

  @Test
  void aPendingRequestIsPolledWithoutItsOutputs() throws Exception {
    assertThat(agree(Duration.ofMinutes(1), request -> asked.size() < 4 ? PENDING : DONE))
        .containsExactly(new BlockKey(1, 10));
    assertThat(asked.get(0)).isInstanceOf(Adopt.class);
    assertThat(asked.subList(1, 4)).containsOnly(new AskAdoption("3", 1));
  }

  @Test
  void aMessageThatFailsIsRepeated() throws Exception {
    assertThat(
            agree(
                Duration.ofMinutes(1),
                request -> {
                  if (asked.size() < 3) {
                    throw new IOException("the test cuts the connection");
                  }
                  return request instanceof Adopt ? DONE : Adoption.of(State.UNKNOWN);
                }))
        .hasSize(1);
    assertThat(asked.get(asked.size() - 1))
        .as("the driver did not have it")
        .isInstanceOf(Adopt.class);
  }

  /** The driver has worked on the request, but its answer never arrives. */
  @Test
  void aLostAnswerIsAskedForAgain() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    assertThat(
            agree(
                Duration.ofSeconds(3),
                request -> {
                  if (request instanceof Adopt) {
                    never.await();
                  }
                  return DONE;
                }))
        .hasSize(1);
  }

  @Test
  void aSilentDriverIsGivenUp() {
    CountDownLatch never = new CountDownLatch(1);
    assertThatThrownBy(
            () ->
                agree(
                    Duration.ofMillis(200),
                    request -> {
                      never.await();
                      return DONE;
                    }))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("within 200 ms (spark.weft.adopt.timeout");
  }

  @Test
  void refusalsAreErrors() {
    assertThatThrownBy(() -> agree(Duration.ofMinutes(1), request -> Adoption.refused("no")))
        .isInstanceOf(IOException.class)
        .hasMessage("no");
    assertThatThrownBy(
            () -> agree(Duration.ofMinutes(1), request -> Adoption.of(State.ADOPTER_REMOVED)))
        .isInstanceOf(AdopterRemovedException.class);
  }
}
