package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.support.Noise;
import io.weft.tensor.codec.CodecKind;
import io.weft.transfers.Manifest.ManifestEntry;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** Random bytes as the manifest of another executor. */
class ManifestFuzzTest {
  @Property(tries = 10_000, shrinking = ShrinkingMode.OFF)
  void everyManifestIsRefusedOrSound(@ForAll long seed) {
    Noise.round(seed, ManifestFuzzTest::round);
  }

  @Test
  @EnabledIfSystemProperty(named = Noise.MINUTES, matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void everyManifestIsRefusedOrSoundForAsLongAsAsked() {
    System.out.println(Noise.forMinutes(ManifestFuzzTest::round) + " manifests");
  }

  private static void round(SplittableRandom random) {
    Manifest manifest = new Manifest();
    DataType[] types = DataType.values();
    CodecKind[] codecs = CodecKind.values();
    ManifestEntry.Kind[] kinds = ManifestEntry.Kind.values();
    for (int entries = random.nextInt(40); entries > 0; entries--) {
      DataType type = types[random.nextInt(types.length)];
      String failure = "é".repeat(random.nextInt(4) * random.nextInt(400));
      boolean unused =
          manifest.offer(
              new ManifestEntry(
                  kinds[random.nextInt(kinds.length)],
                  random.nextLong(),
                  type,
                  random.nextLong() >>> 1,
                  codecs[random.nextInt(codecs.length)],
                  failure,
                  new TransferAttempt(random.nextInt(), random.nextInt())));
    }
    ByteBuffer block = ByteBuffer.allocate(Manifest.BYTES);
    manifest.encode(block);
    byte[] received = Noise.mangled(block, random, 8);
    Noise.check(
        received.length,
        IllegalArgumentException.class,
        () -> {
          List<ManifestEntry> entries = Manifest.decode(ByteBuffer.wrap(received));
          for (ManifestEntry entry : entries) {
            assertThat(entry.count()).isNotNegative();
            assertThat(entry.failure().length()).isLessThanOrEqualTo(received.length);
          }
          return entries;
        });
  }
}
