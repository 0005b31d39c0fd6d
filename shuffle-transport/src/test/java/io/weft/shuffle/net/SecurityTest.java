package io.weft.shuffle.net;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.support.Tap;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Spark's settings for authentication and encryption apply to all bytes of Weft. */
class SecurityTest {
  private static final BlockKey KEY = new BlockKey(1, 0);
  private static final String PLAIN = "the quick brown fox jumps over the lazy dog. ";
  private static final int COPIES = 40_000;

  @TempDir Path folder;

  private TestCluster cluster;

  @BeforeEach
  void open() throws IOException {
    cluster =
        new TestCluster(folder)
            .mode(TransportMode.TCP)
            .timeout(Duration.ofSeconds(20))
            .window(8 << 20, 48 << 20);
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private static SparkConf secret(String secret) {
    return new SparkConf(false)
        .set("spark.authenticate", "true")
        .set("spark.authenticate.secret", secret);
  }

  private static SparkConf encrypted() {
    return secret("right").set("spark.network.crypto.enabled", "true");
  }

  private SparkConf tls() throws Exception {
    Path store = folder.resolve("store.jks");
    Process keytool =
        new ProcessBuilder(
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
                store.toString())
            .redirectErrorStream(true)
            .start();
    assertThat(keytool.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(keytool.exitValue())
        .as(new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
        .isZero();
    return secret("right")
        .set("spark.ssl.rpc.enabled", "true")
        .set("spark.ssl.rpc.keyStore", store.toString())
        .set("spark.ssl.rpc.keyStorePassword", "password")
        .set("spark.ssl.rpc.keyPassword", "password")
        .set("spark.ssl.rpc.trustStore", store.toString())
        .set("spark.ssl.rpc.trustStorePassword", "password")
        .set("spark.ssl.rpc.protocol", "TLSv1.3");
  }

  @Test
  void withoutEncryptionTheTapSeesThePlainText() throws Exception {
    assertThat(readThroughTap(new SparkConf(false))).contains(PLAIN);
  }

  @Test
  void authenticationAloneDoesNotEncrypt() throws Exception {
    assertThat(readThroughTap(secret("right"))).contains(PLAIN);
  }

  @Test
  void sparksEncryptionHoldsForBlocks() throws Exception {
    assertThat(readThroughTap(encrypted())).doesNotContain(PLAIN.substring(0, 12));
  }

  @Test
  void sparksGcmEncryptionHoldsForBlocks() throws Exception {
    SparkConf conf = encrypted().set("spark.network.crypto.cipher", "AES/GCM/NoPadding");
    assertThat(readThroughTap(conf)).doesNotContain(PLAIN.substring(0, 12));
  }

  @Test
  void saslEncryptionHoldsForBlocks() throws Exception {
    SparkConf conf = secret("right").set("spark.authenticate.enableSaslEncryption", "true");
    assertThat(readThroughTap(conf)).doesNotContain(PLAIN.substring(0, 12));
  }

  @Test
  void tlsHoldsForBlocks() throws Exception {
    assertThat(readThroughTap(tls())).doesNotContain(PLAIN.substring(0, 12));
  }

  @Test
  void aReaderWithAnotherSecretIsRefused() throws Exception {
    assertRefused(secret("right"), secret("wrong"));
  }

  @Test
  void aReaderWithAnotherSecretIsRefusedWithEncryption() throws Exception {
    assertRefused(encrypted(), encrypted().set("spark.authenticate.secret", "wrong"));
  }

  @Test
  void aReaderWithoutASecretIsRefused() throws Exception {
    assertRefused(secret("right"), new SparkConf(false));
  }

  private void assertRefused(SparkConf ownerConf, SparkConf readerConf) throws IOException {
    cluster.timeout(Duration.ofSeconds(5));
    ExecutorExchange owner = cluster.conf(ownerConf).open("owner");
    write(owner);
    ExecutorExchange reader = cluster.conf(readerConf).open("reader");
    assertThatThrownBy(() -> read(reader))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("executor reader cannot read shuffle 1 map 0")
        .hasMessageContaining("executor owner");
    assertThat(owner.statistics().get(io.weft.shuffle.peer.ExchangeCounter.BYTES_SERVED)).isZero();
    TestCluster.assertNothingHeld(reader);
  }

  private String readThroughTap(SparkConf conf) throws Exception {
    cluster.conf(conf);
    ExecutorExchange owner = cluster.open("owner");
    ExecutorExchange reader = cluster.open("reader");
    write(owner);
    try (Tap tap = new Tap(owner.address())) {
      cluster.announce(tap.address());
      read(reader);
      assertThat(tap.connections()).isEqualTo(1);
      cluster.removeShuffle(1);
      return tap.passed();
    }
  }

  /** Writes small chunks and a large one, which use different code to reach the socket. */
  private static void write(ExecutorExchange owner) throws IOException {
    try (MapOutputWriter writer = owner.newMapOutput(KEY, 2)) {
      for (int i = 0; i < 10; i++) {
        writer.commit(0, filled(writer, 1), PLAIN.length(), 1);
      }
      writer.commit(1, filled(writer, COPIES), (long) COPIES * PLAIN.length(), 1);
      writer.publish();
    }
  }

  private static Extent filled(MapOutputWriter writer, int copies) throws IOException {
    byte[] text = PLAIN.repeat(copies).getBytes(StandardCharsets.US_ASCII);
    Extent extent = writer.allocate(text.length);
    Memory.copyFrom(text, Memory.BYTE_ARRAY, extent.address(), text.length);
    return extent;
  }

  private static void read(ExecutorExchange reader) throws BlockFetchException {
    long estimate = (long) COPIES * PLAIN.length();
    try (ChunkReader chunks =
        reader.read(List.of(request("owner", KEY, 0, 2, estimate)), FetchListener.NONE)) {
      int count = 0;
      while (chunks.next()) {
        byte[] text = new byte[(int) chunks.length()];
        Memory.copyTo(chunks.address(), text, Memory.BYTE_ARRAY, text.length);
        int copies = text.length / PLAIN.length();
        assertThat(new String(text, StandardCharsets.US_ASCII).equals(PLAIN.repeat(copies)))
            .isTrue();
        count++;
      }
      assertThat(count).isEqualTo(11);
    }
  }
}
