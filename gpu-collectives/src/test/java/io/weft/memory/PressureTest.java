package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** How often hooks are asked for memory, by a clock that stands still. */
class PressureTest {
  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5);
  private final AtomicInteger calls = new AtomicInteger();
  private final Pressure pressure = new Pressure(now::get);

  PressureTest() {
    pressure.add(calls::incrementAndGet);
  }

  @Test
  void hooksThatAreOfNoUseAreLeftAloneForAWhile() throws ArenaFullException {
    assertThat(pressure.relieve()).isTrue();
    for (int i = 0; i < 1000; i++) {
      assertThat(pressure.relieve()).isFalse();
    }
    assertThat(calls).hasValue(1);
    now.addAndGet(Pressure.PAUSE_NANOS);
    assertThat(pressure.relieve()).isTrue();
    assertThat(calls).hasValue(2);
  }

  @Test
  void whereTheyHelpedTheNextShortageIsAnother() throws ArenaFullException {
    assertThat(pressure.relieve()).isTrue();
    pressure.helped();
    assertThat(pressure.relieve()).isTrue();
    assertThat(pressure.relieve()).isFalse();
    assertThat(calls).hasValue(2);
  }

  @Test
  void whoWouldFailAsksInAnyCase() throws ArenaFullException {
    assertThat(pressure.relieve()).isTrue();
    pressure.run();
    assertThat(calls).hasValue(2);
    assertThat(pressure.relieve()).as("just asked").isFalse();
  }
}
