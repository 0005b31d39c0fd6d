package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.probe.JfrModule;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An executor on a Java without Flight Recorder, as jlink makes it. */
class WithoutJfrTest {
  private static final Sizes SIZES = (map, partition, chunk) -> chunk < 2 ? 70_000 : 0;

  /** What Spark and Weft need. */
  private static final String MODULES = "java.se,jdk.management,jdk.security.auth,jdk.unsupported";

  @TempDir Path folder;

  @Test
  void blocksAreWrittenAndRead() throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> argument.startsWith("--add") || argument.startsWith("-XX"))
        .forEach(command::add);
    String classPath =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    command.addAll(List.of("--limit-modules", MODULES, "-Xmx512m"));
    command.addAll(List.of("-cp", classPath, WithoutJfrTest.class.getName(), folder.toString()));
    Path log = folder.resolve("log");
    Process child =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    try {
      assertThat(child.waitFor(60, TimeUnit.SECONDS)).isTrue();
    } finally {
      child.destroyForcibly();
    }
    assertThat(log).content(StandardCharsets.UTF_8).contains("read all, recorder: false");
    assertThat(child.exitValue()).isZero();
  }

  /** Writes and reads on each path, and loads the other classes that have events. */
  public static void main(String[] args) throws Exception {
    try (TestCluster cluster = new TestCluster(Path.of(args[0]))) {
      ExecutorExchange owner = cluster.open("owner");
      ExecutorExchange sameHost = cluster.open("shm");
      ExecutorExchange remote = cluster.mode(TransportMode.TCP).open("tcp");
      BlockKey key = new BlockKey(1, 0);
      write(owner, key, 3, SIZES);
      for (ExecutorExchange reader : List.of(owner, sameHost, remote)) {
        assertThat(readAll(reader, List.of(request("owner", key, 0, 3, 420_000))))
            .containsExactlyElementsOf(expected(1, 0, 1, 0, 3, SIZES));
      }
    }
    Class<?> collectives = Class.forName("io.weft.collectives.OrderedCommunicator");
    Class<?> transfers = Class.forName("io.weft.transfers.TransferPreparation");
    assertThat(List.of(collectives, transfers)).hasSize(2);
    System.out.println("read all, recorder: " + JfrModule.PRESENT);
    System.exit(0);
  }
}
