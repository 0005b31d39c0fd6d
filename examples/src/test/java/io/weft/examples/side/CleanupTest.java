package io.weft.examples.side;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CleanupTest {
  private final List<String> closed = new ArrayList<>();

  private AutoCloseable resource(String name) {
    return () -> closed.add(name);
  }

  @Test
  void closesLastOpenedFirstAndOnce() {
    Cleanup cleanup = new Cleanup();
    cleanup.add(resource("folder"));
    cleanup.add(resource("process"));
    cleanup.close();
    cleanup.close();
    assertThat(closed).containsExactly("process", "folder");
  }

  @Test
  void afterAFailureTheOthersAreClosed() {
    Cleanup cleanup = new Cleanup();
    cleanup.add(resource("folder"));
    cleanup.add(
        () -> {
          throw new IOException("stuck");
        });
    cleanup.close();
    assertThat(closed).containsExactly("folder");
  }

  @Test
  void aResourceAddedAfterCloseIsClosedAtOnce() {
    Cleanup cleanup = new Cleanup();
    cleanup.close();
    assertThatIllegalStateException().isThrownBy(() -> cleanup.add(resource("late")));
    assertThat(closed).containsExactly("late");
  }
}
