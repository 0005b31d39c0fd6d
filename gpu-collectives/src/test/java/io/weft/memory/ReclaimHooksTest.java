package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** How often the reclaim hooks run, with a clock that the test moves. */
class ReclaimHooksTest {
  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5);
  private final AtomicInteger calls = new AtomicInteger();
  private final ReclaimHooks pressure = new ReclaimHooks(now::get);

  ReclaimHooksTest() {
    pressure.add(calls::incrementAndGet);
  }

  @Test
  void hooksThatFreedNothingRest() throws ArenaFullException {
    assertThat(pressure.relieve()).isTrue();
    for (int i = 0; i < 1000; i++) {
      assertThat(pressure.relieve()).isFalse();
    }
    assertThat(calls).hasValue(1);
    now.addAndGet(SpillPolicy.PAUSE_NANOS);
    assertThat(pressure.relieve()).isTrue();
    assertThat(calls).hasValue(2);
  }

  @Test
  void hooksThatHelpedRunAgainAtOnce() throws ArenaFullException {
    assertThat(pressure.relieve()).isTrue();
    pressure.helped();
    assertThat(pressure.relieve()).isTrue();
    assertThat(pressure.relieve()).isFalse();
    assertThat(calls).hasValue(2);
  }

  @Test
  void anAllocationThatWouldFailRunsTheHooks() throws ArenaFullException {
    assertThat(pressure.relieve()).isTrue();
    pressure.run();
    assertThat(calls).hasValue(2);
    assertThat(pressure.relieve()).as("hooks just ran").isFalse();
  }
}
