package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Device;
import io.weft.device.HostEvent;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.OfferMatcher.Group;
import io.weft.transfers.OfferMatcher.Matched;
import io.weft.transfers.PreparedTransfer.TransferEndpoints;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Two ends that match the same offers must reach the same result without another message. */
class OfferMatcherTest {
  private static final int WORLDS = 2_000;
  private static final int ROUNDS = 30;
  private static final int KEYS = 3;

  /** One end, with the transfers that it has not offered. */
  private static final class End {
    private final int number;
    private final OfferMatcher matcher = new OfferMatcher();
    private final List<PreparedTransfer> queued = new ArrayList<>();
    private final List<PreparedTransfer> all = new ArrayList<>();
    private final Set<PreparedTransfer> failed = new HashSet<>();
    private int attempt;

    End(int number) {
      this.number = number;
    }

    void start(SplittableRandom random) {
      attempt += random.nextInt(8) == 0 ? 1 : 0;
      PreparedTransfer transfer =
          new PreparedTransfer(
              new CliqueKey(List.of(new CliqueMember("0", "first", Device.HOST)), "test"),
              new TransferEndpoints(device(number), device(1 - number), random.nextBoolean()),
              random.nextInt(KEYS),
              random.nextBoolean() ? new TransferAttempt(4, attempt) : TransferAttempt.NONE,
              Content.ints(1, 0),
              TransferEncoding.PLAIN,
              HostEvent.completed("its source"));
      transfer.queue();
      queued.add(transfer);
      all.add(transfer);
    }

    void failOne(SplittableRandom random) {
      if (!all.isEmpty()) {
        PreparedTransfer transfer = all.get(random.nextInt(all.size()));
        if (random.nextBoolean()) {
          transfer.withdraw("by the test");
        } else {
          transfer.close();
        }
      }
    }

    List<ManifestEntry> withdrawals() {
      all.stream().filter(PreparedTransfer::hasFailed).forEach(failed::add);
      return encoded(matcher.withdrawals());
    }

    List<ManifestEntry> offers() {
      all.stream().filter(PreparedTransfer::hasFailed).forEach(failed::add);
      Manifest manifest = new Manifest();
      matcher.withdrawInto(manifest);
      for (PreparedTransfer transfer : queued) {
        assertThat(matcher.offerInto(manifest, transfer)).isTrue();
      }
      queued.clear();
      matcher.endFailed();
      return encoded(manifest);
    }

    private static List<ManifestEntry> encoded(Manifest manifest) {
      ByteBuffer block = ByteBuffer.allocate(Manifest.BYTES);
      manifest.encode(block);
      return Manifest.decode(block);
    }
  }

  @Test
  void bothEndsMatchTheSameTransfersWhateverIsWithdrawn() {
    int moved = 0;
    for (int world = 0; world < WORLDS; world++) {
      SplittableRandom random = new SplittableRandom(world);
      List<End> ends = List.of(new End(0), new End(1));
      for (int round = 0; round < ROUNDS; round++) {
        moved += round(ends, random, "world " + world + ", round " + round);
      }
    }
    assertThat(moved).as("matched").isGreaterThan(WORLDS * ROUNDS / 10);
  }

  private static int round(List<End> ends, SplittableRandom random, String where) {
    for (End end : ends) {
      for (int i = random.nextInt(3); i > 0; i--) {
        end.start(random);
      }
      if (random.nextInt(3) == 0) {
        end.failOne(random);
      }
    }
    List<ManifestEntry> one = ends.get(0).offers();
    List<ManifestEntry> other = ends.get(1).offers();
    ends.get(random.nextInt(2)).failOne(random);
    ends.get(0).matcher.addPeerOffers(other);
    ends.get(1).matcher.addPeerOffers(one);
    confirm(ends, where);
    // A withdrawal that crosses the match changes nothing.
    ends.get(random.nextInt(2)).failOne(random);
    Matched here = ends.get(0).matcher.match();
    Matched there = ends.get(1).matcher.match();
    check(here.complete().sends(), there.complete().receives(), where);
    check(here.complete().receives(), there.complete().sends(), where);
    assertThat(here.behind()).as(where).isEqualTo(Group.empty());
    for (int end = 0; end < 2; end++) {
      Group group = (end == 0 ? here : there).complete();
      Set<PreparedTransfer> failed = ends.get(end).failed;
      assertThat(group.sends()).as(where).noneMatch(failed::contains);
      assertThat(group.receives()).as(where).noneMatch(failed::contains);
    }
    ends.get(0).matcher.moved(here.complete());
    ends.get(1).matcher.moved(there.complete());
    for (End end : ends) {
      assertThat(end.matcher.isStuck() && !end.matcher.isWaiting()).as(where).isFalse();
    }
    assertThat(ends.get(0).matcher.isStuck()).as(where).isEqualTo(ends.get(1).matcher.isStuck());
    return here.complete().size();
  }

  private static void confirm(List<End> ends, String where) {
    boolean more = ends.get(0).matcher.mayMatch();
    assertThat(ends.get(1).matcher.mayMatch()).as(where).isEqualTo(more);
    while (more) {
      List<ManifestEntry> one = ends.get(0).withdrawals();
      List<ManifestEntry> other = ends.get(1).withdrawals();
      ends.get(0).matcher.addPeerWithdrawals(other);
      ends.get(1).matcher.addPeerWithdrawals(one);
      more = !one.isEmpty() || !other.isEmpty();
    }
  }

  private static void check(
      List<PreparedTransfer> sent, List<PreparedTransfer> received, String where) {
    assertThat(sent).as(where).hasSameSizeAs(received);
    for (int i = 0; i < sent.size(); i++) {
      assertThat(sent.get(i).key()).as(where).isEqualTo(received.get(i).key());
    }
  }
}
