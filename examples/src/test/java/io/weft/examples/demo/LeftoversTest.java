package io.weft.examples.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeftoversTest {
  @TempDir private Path sharedMemory;

  @Test
  void findsOnlyTheFoldersOfTheApplication() throws IOException {
    Path user = Files.createDirectory(sharedMemory.resolve("weft-user"));
    Path ours = Files.createDirectory(user.resolve("app-1-0000-1234abcd"));
    Files.createDirectory(user.resolve("app-1-00001-1234abcd"));
    Files.createDirectory(sharedMemory.resolve("app-1-0000-1234abcd"));
    assertThat(Demo.Leftovers.find(sharedMemory, "app-1-0000")).containsExactly(ours);
    assertThat(Demo.Leftovers.find(sharedMemory, "app-2")).isEmpty();
    assertThat(Demo.Leftovers.find(sharedMemory.resolve("absent"), "app-1-0000")).isEmpty();
  }
}
