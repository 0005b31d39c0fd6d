package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.jna.Library;
import com.sun.jna.Native;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests descriptors that are sent to an inbox, and that none stays open. */
class DescriptorInboxTest {
  private static final int MORE_THAN_FIT = 40;

  @TempDir Path folder;

  private Path file;
  private long socketsBefore;

  /** Functions that Java does not offer. */
  public interface Libc extends Library {
    int open(String path, int flags);
  }

  @BeforeEach
  void makeFile() throws IOException {
    file = Files.writeString(folder.resolve("passed-on"), "content of the file");
    socketsBefore = OpenDescriptors.count("socket:");
  }

  @AfterEach
  void nothingStaysOpen() {
    assertThat(OpenDescriptors.count("passed-on")).isZero();
    assertThat(OpenDescriptors.count("socket:")).isEqualTo(socketsBefore);
  }

  private Descriptor open() {
    return Descriptor.of(Native.load("c", Libc.class).open(file.toString(), 0));
  }

  private void send(InboxAddress to) {
    try (Descriptor own = open()) {
      DescriptorInbox.send(to, own);
    }
  }

  @Test
  void descriptorArrivesAndOutlivesTheSenders() throws IOException {
    try (DescriptorInbox inbox = DescriptorInbox.open()) {
      send(InboxAddress.decode(inbox.address().encode()));
      try (Descriptor arrived = inbox.receive()) {
        Path there = Path.of("/proc/self/fd/" + arrived.number());
        assertThat(Files.readString(there)).isEqualTo("content of the file");
        assertThat(OpenDescriptors.count("passed-on")).isOne();
      }
    }
  }

  @Test
  void emptyInboxIsAnErrorAndNotAWait() {
    try (DescriptorInbox inbox = DescriptorInbox.open()) {
      assertThatThrownBy(inbox::receive)
          .hasMessage("no descriptor came to the inbox " + inbox.address().name());
    }
  }

  /** All processes see the name of a socket; only some know the token. */
  @Test
  void descriptorsWithoutTheTokenAreClosed() {
    try (DescriptorInbox inbox = DescriptorInbox.open()) {
      InboxAddress seen = new InboxAddress(inbox.address().name(), UUID.randomUUID());
      send(seen);
      assertThatThrownBy(inbox::receive).hasMessageContaining("no descriptor came");
      assertThat(OpenDescriptors.count("passed-on")).isZero();
      send(seen);
      send(inbox.address());
      inbox.receive().close();
    }
  }

  @Test
  void descriptorsThatWereNotTakenAreClosedWithTheInbox() {
    try (DescriptorInbox inbox = DescriptorInbox.open()) {
      send(inbox.address());
      send(inbox.address());
      inbox.receive().close();
    }
  }

  @Test
  void fullInboxIsAnErrorAndNotAWait() {
    try (DescriptorInbox inbox = DescriptorInbox.open()) {
      assertThatThrownBy(
              () -> {
                for (int i = 0; i < MORE_THAN_FIT; i++) {
                  send(inbox.address());
                }
              })
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("connecting to the inbox " + inbox.address().name())
          .hasMessageContaining("failed with error 11 of the system: it is full");
    }
  }

  @Test
  void aClosedInboxCannotBeReached() {
    DescriptorInbox inbox = DescriptorInbox.open();
    inbox.close();
    inbox.close();
    assertThatThrownBy(() -> send(inbox.address()))
        .hasMessageContaining("failed with error 111 of the system: it is closed, or in another");
    assertThatThrownBy(inbox::receive).hasMessageContaining("was closed");
  }

  @Test
  void addressesAreChecked() {
    assertThatThrownBy(() -> InboxAddress.decode(new byte[31])).hasMessageContaining("31 bytes");
    assertThatThrownBy(() -> Descriptor.of(-1)).hasMessageContaining("-1 is not a descriptor");
    Descriptor own = open();
    own.close();
    own.close();
    assertThatThrownBy(own::number).hasMessageContaining("was closed");
  }
}
