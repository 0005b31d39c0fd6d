package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.net.Compression;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.BlockKey;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Folders;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TrafficRecorder;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.server.NoOpRpcHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import scala.Option;

/**
 * Spark's security settings apply to the data that Weft sends, keeps in memory and writes to disk.
 * Each cluster starts once; the first one verifies that the tests can detect plain text.
 */
class SecurityTest {
  private static final int ROWS = 60_000;
  private static final String MARKER = "weft-marker-in-plain-text";
  private static final String SELECT =
      "SELECT id, CONCAT('" + MARKER + "-', id % 7) AS s FROM RANGE(0, " + ROWS + ", 1, 4)";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private WeftCluster cluster;

  private WeftCluster cluster() {
    cluster =
        new WeftCluster(WORKSPACE)
            .set("spark.weft.transport", "tcp")
            .set("spark.weft.route", "rows")
            .set("spark.shuffle.compress", "false");
    return cluster;
  }

  @AfterEach
  void stop() {
    if (cluster != null) {
      cluster.stop();
    }
  }

  @Test
  void withoutSecurityPlainTextIsVisible() throws Exception {
    String segment = Integer.toString(1 << 20);
    cluster()
        .set("spark.weft.memory.segmentSize", segment)
        .set("spark.weft.memory.size", segment)
        .start();
    PeerAddress executor = TrafficRecorder.realAddress(executors()[0]);
    try (TrafficRecorder tap = new TrafficRecorder(executors())) {
      JavaRDD<String> rows = shuffled();
      assertRowsAreRight(rows);
      assertThat(tap.contains(MARKER)).as("plain text on the network").isTrue();
      assertThat(filesWithTheMarker())
          .as("plain text on disk, as blocks were spilled")
          .isNotEmpty();
      assertThat(rows.count()).isEqualTo(ROWS);
    }
    assertThat(BlocksRefused.matches(askAsAStranger(executor))).isTrue();
    assertOnlyTheOwnerMayLook();
  }

  @Test
  void encryptionHoldsForBlocksAndStrangersAreRefused() throws Exception {
    cluster()
        .set("spark.authenticate", "true")
        .set("spark.authenticate.secret", "well kept")
        .set("spark.network.crypto.enabled", "true")
        .start();
    PeerAddress executor = TrafficRecorder.realAddress(executors()[0]);
    assertNothingIsSeenOnTheNetwork();
    assertThatThrownBy(() -> askAsAStranger(executor)).hasMessageContaining("Expected SaslMessage");
  }

  @Test
  void tlsHoldsForBlocks() throws Exception {
    String store = keyStore().toString();
    cluster()
        .set("spark.authenticate", "true")
        .set("spark.authenticate.secret", "well kept")
        .set("spark.ssl.rpc.enabled", "true")
        .set("spark.ssl.rpc.keyStore", store)
        .set("spark.ssl.rpc.keyStorePassword", "password")
        .set("spark.ssl.rpc.keyPassword", "password")
        .set("spark.ssl.rpc.trustStore", store)
        .set("spark.ssl.rpc.trustStorePassword", "password")
        .set("spark.ssl.rpc.protocol", "TLSv1.3")
        .start();
    assertNothingIsSeenOnTheNetwork();
  }

  /** As in the first test, nearly all blocks are spilled. */
  @Test
  void encryptedDisksHoldNoPlainText() throws Exception {
    String segment = Integer.toString(1 << 20);
    cluster()
        .set("spark.io.encryption.enabled", "true")
        .set("spark.weft.memory.segmentSize", segment)
        .set("spark.weft.memory.size", segment)
        .start();
    assertThat(SparkEnv.get().shuffleManager().getClass().getName()).contains("Weft");
    JavaRDD<String> rows = shuffled();
    assertRowsAreRight(rows);
    assertThat(cluster.sum("bytesSpilled")).as("bytes that were spilled").isPositive();
    assertThat(bytesOnDisk()).as("bytes that shuffles wrote").isGreaterThan(1L << 20);
    assertThat(filesWithTheMarker()).isEmpty();
    assertThat(rows.count()).isEqualTo(ROWS);
  }

  /** The ids of the executors; one that ended at its start has been replaced by another. */
  private String[] executors() {
    return cluster.executors().stream().map(ExecutorProcess::id).toArray(String[]::new);
  }

  private JavaRDD<String> shuffled() {
    return cluster.session().sql(SELECT).repartition(5, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private void assertRowsAreRight(JavaRDD<String> rows) {
    List<String> expected =
        cluster.session().sql(SELECT).collectAsList().stream().map(RowText::of).sorted().toList();
    Rows.assertSame("shuffled rows", expected, rows.collect().stream().sorted().toList());
  }

  private void assertNothingIsSeenOnTheNetwork() throws Exception {
    try (TrafficRecorder tap = new TrafficRecorder(executors())) {
      assertRowsAreRight(shuffled());
      assertThat(tap.bytes()).as("bytes that passed").isGreaterThan(1 << 20);
      assertThat(tap.contains(MARKER)).as("plain text on the network").isFalse();
      assertThat(tap.contains(MARKER.substring(0, 12))).as("a part of it").isFalse();
    }
  }

  /**
   * A request for blocks from a client that knows the address and the protocol, but not the secret.
   */
  private static ByteBuffer askAsAStranger(PeerAddress executor) throws Exception {
    OpenBlocks request =
        new OpenBlocks(
            "stranger",
            1 << 20,
            0,
            1,
            true,
            Compression.NONE,
            List.of(new BlockRange(new BlockKey(0, 0), 0, 1)));
    try (TransportContext context =
            new TransportContext(
                SparkTransportConf.fromSparkConf(
                    new SparkConf(false), "shuffle", 1, Option.empty(), Option.empty()),
                new NoOpRpcHandler());
        TransportClientFactory factory = context.createClientFactory()) {
      TransportClient client = factory.createClient(executor.host(), executor.port());
      return client.sendRpcSync(request.encode(), 30_000);
    }
  }

  private static void assertOnlyTheOwnerMayLook() throws IOException {
    List<Path> ours = Folders.tree(WORKSPACE.sharedMemory());
    assertThat(ours).as("files in shared memory").isNotEmpty();
    for (Path file : ours) {
      if (!file.equals(WORKSPACE.sharedMemory()) && !Files.isSymbolicLink(file)) {
        assertOnlyTheOwnerMayLookAt(file);
      }
    }
  }

  private static void assertOnlyTheOwnerMayLookAt(Path file) throws IOException {
    try {
      String expected = Files.isDirectory(file) ? "rwx------" : "rw-------";
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
          .as(file.toString())
          .isEqualTo(expected);
    } catch (NoSuchFileException e) {
      // Deleted since the folder was listed.
    }
  }

  private static List<Path> filesOnDisk() {
    return Folders.tree(WORKSPACE.localFolder()).stream()
        .filter(file -> Files.isRegularFile(file) && !file.toString().endsWith(".jar"))
        .toList();
  }

  private static long bytesOnDisk() {
    return filesOnDisk().stream().mapToLong(file -> file.toFile().length()).sum();
  }

  private static List<Path> filesWithTheMarker() {
    return filesOnDisk().stream().filter(SecurityTest::hasTheMarker).toList();
  }

  private static boolean hasTheMarker(Path file) {
    try {
      return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).contains(MARKER);
    } catch (NoSuchFileException e) {
      // Deleted since the folder was listed.
      return false;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Path keyStore() throws Exception {
    Path store = WORKSPACE.folder().resolve("store.jks");
    List<String> command =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
            "-genkeypair",
            "-alias",
            "weft",
            "-keyalg",
            "RSA",
            "-keysize",
            "2048",
            "-dname",
            "CN=localhost",
            "-validity",
            "2",
            "-storepass",
            "password",
            "-keypass",
            "password",
            "-storetype",
            "JKS",
            "-keystore",
            store.toString());
    Process keytool = new ProcessBuilder(command).redirectErrorStream(true).start();
    assertThat(keytool.waitFor(60, TimeUnit.SECONDS)).as("keytool ended").isTrue();
    String said = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(keytool.exitValue()).as(said).isZero();
    return store;
  }
}
