package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.UniqueId;
import io.weft.fuzz.Fuzz;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** Sends greetings of strangers, who know everything about them except the secret. */
class GreetingFuzzTest {
  private static final UniqueId ID = UniqueId.create();
  private static final UniqueId OTHER = UniqueId.create();

  @Property(tries = 20_000, shrinking = ShrinkingMode.OFF)
  void onlyGreetingsMadeWithTheSecretAreAccepted(@ForAll long seed) {
    Fuzz.round(seed, GreetingFuzzTest::round);
  }

  @Test
  @EnabledIfSystemProperty(named = Fuzz.MINUTES, matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void onlyGreetingsMadeWithTheSecretAreAcceptedForMinutes() {
    System.out.println(Fuzz.forMinutes(GreetingFuzzTest::round) + " greetings");
  }

  private static void round(SplittableRandom random) {
    Greeting.Purpose[] purposes = Greeting.Purpose.values();
    Greeting said =
        new Greeting(random.nextInt(), random.nextInt(), purposes[random.nextInt(purposes.length)]);
    byte[] sound = said.encode(random.nextInt(4) > 0 ? ID : OTHER);
    // A listener reads exactly this many bytes.
    byte[] heard = Arrays.copyOf(Fuzz.mangled(sound, random), Greeting.BYTES);
    boolean genuine = Arrays.equals(heard, said.encode(ID));
    try {
      Greeting believed = Greeting.decode(ByteBuffer.wrap(heard), ID);
      assertThat(genuine).as("believed %s", believed).isTrue();
      assertThat(believed).isEqualTo(said);
    } catch (IOException e) {
      assertThat(genuine).as("refused: %s", e.getMessage()).isFalse();
      assertThat(e.getMessage()).isNotBlank();
    }
  }
}
