package io.weft.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.SettingNames;
import io.weft.shuffle.fetch.BlockReaders.PathLog;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.ExecutorFolder;
import org.junit.jupiter.api.Test;

/** The logged path of blocks. */
class PathLogTest {
  private static PeerAddress peer(String kernel) {
    return new PeerAddress("1", "00c0ffee", "host", 1, "/folder", "token", kernel, "1");
  }

  @Test
  void thePathHasItsReason() {
    String here = ExecutorFolder.currentBootId();
    PathLog auto = new PathLog(TransportMode.AUTO, SettingNames.OWN);
    assertThat(auto.choice(peer(here), true))
        .hasToString("shm (it runs on this kernel, and its folder is visible here)");
    assertThat(auto.choice(peer(here), false))
        .hasToString("tcp (it runs on this kernel, but its folder is not visible here)");
    assertThat(auto.choice(peer("another"), false)).hasToString("tcp (it runs on another kernel)");
    assertThat(new PathLog(TransportMode.TCP, SettingNames.OWN).choice(peer(here), false))
        .hasToString("tcp (mode is tcp)");
  }
}
