package io.weft.collectives.clique;

import static io.weft.collectives.clique.CliqueProcesses.clique;
import static io.weft.collectives.clique.CliqueProcesses.member;
import static io.weft.collectives.clique.CliqueProcesses.members;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class CliqueRequestsTest {
  @Test
  void largerCliquesComeFirstThenRequestOrder() {
    CliqueRequests requests =
        new CliqueRequests()
            .add(members(4, 5), "b")
            .add(members(0, 1), "a")
            .add(members(0, 1, 2), "a")
            .add(members(0, 1), "c")
            .add(members(4, 5), "b")
            .add(members(0, 1, 2, 3), "a");
    assertThat(requests.ordered())
        .containsExactly(
            clique("a", 0, 1, 2, 3),
            clique("a", 0, 1, 2),
            clique("b", 4, 5),
            clique("a", 0, 1),
            clique("c", 0, 1));
  }

  /** Trap: an order taken from a hash table differs between processes. */
  @Test
  void orderOfAcquisitionIsNotAHashOrder() {
    List<CliqueKey> keys = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      keys.add(clique("purpose " + i, i, i + 1));
    }
    Collections.shuffle(keys, new Random(3));
    CliqueRequests requests = new CliqueRequests();
    keys.forEach(key -> requests.add(key.members(), key.purpose()));
    assertThat(requests.ordered()).containsExactlyElementsOf(keys);
  }

  @Test
  void sameCliqueWithOtherDeviceGroupsIsRefused() {
    CliqueRequests requests =
        new CliqueRequests().add(members(0, 1), "a", List.of(members(0, 1), members(2, 3)));
    requests.add(members(0, 1), "a", List.of(members(0, 1), members(2, 3)));
    assertThatThrownBy(
            () -> requests.add(members(0, 1), "a", List.of(members(0, 1), members(2, 4))))
        .hasMessageContaining("device groups")
        .hasMessageContaining("executor-4");
  }

  @Test
  void emptyDeviceListIsNoRequest() {
    assertThat(new CliqueRequests().add(List.of(), "a").ordered()).isEmpty();
  }

  @Test
  void differentCollectivesProduceDifferentCliques() {
    assertThat(clique("collectives", 0, 1)).isNotEqualTo(clique("transfers", 0, 1));
    assertThat(clique("collectives", 0, 1)).isNotEqualTo(clique("collectives", 1, 0));
    assertThat(clique("collectives", 0, 1)).isEqualTo(clique("collectives", 0, 1));
  }

  @Test
  void restartedProcessIsAnotherMember() {
    CliqueKey before = clique("a", 0, 1);
    CliqueKey after = new CliqueKey(List.of(member(0), member(1, "second")), "a");
    assertThat(after).isNotEqualTo(before);
    assertThatThrownBy(() -> after.rankOf(member(1))).hasMessageContaining("not a member");
  }

  @Test
  void keysAreTotallyOrdered() {
    List<CliqueKey> sorted =
        List.of(clique("b", 0, 1, 2), clique("a", 0, 1), clique("a", 0, 2), clique("b", 0, 1));
    List<CliqueKey> shuffled = new ArrayList<>(sorted);
    for (int seed = 0; seed < 20; seed++) {
      Collections.shuffle(shuffled, new Random(seed));
      Collections.sort(shuffled);
      assertThat(shuffled).isEqualTo(sorted);
    }
    assertThat(clique("a", 0, 1).compareTo(clique("a", 0, 1))).isZero();
  }

  @Test
  void cliquesWithoutOrWithDoubleMembersAreRefused() {
    assertThatThrownBy(() -> clique("a")).hasMessageContaining("without members");
    assertThatThrownBy(() -> clique("a", 1, 1)).hasMessageContaining("twice");
  }
}
