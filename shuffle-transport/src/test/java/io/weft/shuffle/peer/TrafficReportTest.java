package io.weft.shuffle.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.Traffic.ReaderTraffic;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.shuffle.peer.TrafficReport.ShuffleTraffic;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

/** What executors report about shuffles and peers, and its bytes. */
class TrafficReportTest {
  private static final long MIB = 1 << 20;

  private final Traffic traffic = new Traffic();

  @Property(tries = 300)
  void decodesWhatItEncoded(
      @ForAll @Size(max = 20) List<@LongRange(min = 0) Long> numbers,
      @ForAll @Size(max = 20) Map<String, @LongRange(min = 0) Long> sources,
      @ForAll boolean byHost)
      throws IOException {
    List<ShuffleTraffic> shuffles =
        numbers.stream()
            .map(n -> new ShuffleTraffic((int) (n >>> 33), List.of(n, 0L, n / 2, 0L, 1L, n)))
            .toList();
    TrafficReport report = new TrafficReport(shuffles, byHost, sources);
    assertThat(TrafficReport.decode(report.encode())).isEqualTo(report);
  }

  @Test
  void otherBytesAreErrors() throws IOException {
    traffic.add(7, Figure.ON_DISK, MIB);
    traffic.read("12", "there", MIB);
    byte[] good = traffic.take().encode();
    for (int length = 0; length < good.length; length++) {
      byte[] cut = Arrays.copyOf(good, length);
      assertThatThrownBy(() -> TrafficReport.decode(cut)).isInstanceOf(IOException.class);
    }
    Random random = new Random(1);
    for (int i = 0; i < 20_000; i++) {
      byte[] bytes = good.clone();
      bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
      try {
        assertThat(TrafficReport.decode(bytes)).isNotNull();
      } catch (IOException expected) {
        assertThat(expected).hasMessageContaining("figures").hasNoCause();
      } catch (RuntimeException e) {
        throw new AssertionError(Arrays.toString(bytes), e);
      }
    }
  }

  @Test
  void figuresAreTakenOnce() {
    traffic.add(3, Figure.GPU, 10);
    traffic.add(3, Figure.GPU, 5);
    traffic.add(4, Figure.ON_DISK, 0);
    traffic.read("1", "here", 6);
    assertThat(traffic.isPending()).isTrue();
    TrafficReport taken = traffic.take();
    assertThat(taken.shuffles()).extracting(ShuffleTraffic::shuffleId).containsExactly(3);
    assertThat(taken.shuffles().get(0).get(Figure.GPU)).isEqualTo(15);
    assertThat(taken.sources()).containsExactly(Map.entry("1", 6L));
    assertThat(traffic.isPending()).isFalse();
    assertThat(traffic.take()).isEqualTo(TrafficReport.NONE);
  }

  @Test
  void aReaderAddsItsBytesAtItsEnd() {
    ReaderTraffic reader = new ReaderTraffic(traffic);
    reader.read(1, Figure.OWN, "me", "", 1);
    reader.read(1, Figure.NETWORK, "you", "there", 2);
    reader.read(1, Figure.OWN, "me", "", 4);
    reader.waited(1, 9);
    assertThat(traffic.isPending()).isFalse();
    reader.read(2, Figure.SAME_HOST, "you", "there", 8);
    reader.flush();
    reader.flush();
    TrafficReport taken = traffic.take();
    assertThat(taken.shuffles())
        .containsExactly(
            new ShuffleTraffic(1, List.of(0L, 5L, 0L, 2L, 0L, 9L)),
            new ShuffleTraffic(2, List.of(0L, 0L, 8L, 0L, 0L, 0L)));
    assertThat(taken.sources()).isEqualTo(Map.of("me", 5L, "you", 10L));
  }

  @Test
  void manyExecutorsAreAddedUpByHost() {
    for (int i = 0; i < 1000; i++) {
      traffic.read("" + i, "host-" + i % 50, 10);
    }
    Map<String, Long> sources = new HashMap<>();
    while (traffic.isPending()) {
      TrafficReport taken = traffic.take();
      assertThat(taken.byHost()).isTrue();
      taken.sources().forEach((host, bytes) -> sources.merge(host, bytes, Long::sum));
    }
    assertThat(sources).hasSize(50).containsEntry("host-7", 200L);
  }

  /** A report is bounded, and so is what waits for reports that are never made. */
  @Test
  void figuresAreBounded() {
    for (int i = 0; i < 3 * Traffic.MAX_PENDING; i++) {
      traffic.add(i, Figure.ON_DISK, MIB);
      traffic.add(i, Figure.WAIT_NANOS, MIB);
      traffic.read("executor-" + i, "a-rather-long-name-of-a-host-" + i, MIB);
    }
    int reports = 0;
    while (traffic.isPending()) {
      assertThat(traffic.take().encode()).hasSizeLessThan(16 << 10);
      reports++;
    }
    assertThat(reports).isEqualTo(Traffic.MAX_PENDING / TrafficReport.MAX_ENTRIES);
  }
}
