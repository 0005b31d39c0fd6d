package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.config.Activation;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The plugin's decisions with, without, and with another version of spark-rapids. */
class RapidsRoleTest {
  private static final Path STUBS = Path.of("rapids-stubs", "target", "classes");
  private static final String SHUFFLE = "com/nvidia/spark/rapids/shuffle/";

  @TempDir Path jar;

  private URLClassLoader loader;

  /** A folder like spark-rapids' jar, with one folder of classes for each Spark version. */
  @BeforeEach
  void makeJar() throws IOException {
    Files.writeString(jar.resolve("rapids4spark-version-info.properties"), "version=26.08.1\n");
    Files.createDirectories(jar.resolve("com/nvidia/spark"));
    Files.createFile(jar.resolve("com/nvidia/spark/SQLPlugin.class"));
    copy(STUBS.resolve("com"), jar.resolve("spark413/com"));
    copy(STUBS.resolve("ai"), jar.resolve("ai"));
    // As in the real jar, some classes are the same for all versions.
    Files.createDirectories(jar.resolve("spark-shared/" + SHUFFLE));
    for (String name : new String[] {"Transaction", "ServerConnection", "BounceBuffer"}) {
      Files.move(
          jar.resolve("spark413/" + SHUFFLE + name + ".class"),
          jar.resolve("spark-shared/" + SHUFFLE + name + ".class"));
    }
    loader =
        new URLClassLoader(new URL[] {jar.toUri().toURL()}, SparkConf.class.getClassLoader()) {
          @Override
          public URL getResource(String name) {
            return name.contains("com/nvidia") ? findResource(name) : super.getResource(name);
          }
        };
  }

  @AfterEach
  void close() throws IOException {
    loader.close();
  }

  private static void copy(Path from, Path to) throws IOException {
    try (Stream<Path> all = Files.walk(from)) {
      all.forEach(
          each -> {
            try {
              Files.createDirectories(to.resolve(from.relativize(each).toString()).getParent());
              Files.copy(each, to.resolve(from.relativize(each).toString()));
            } catch (IOException e) {
              throw new UncheckedIOException(e);
            }
          });
    }
  }

  private static SparkConf conf() {
    return new SparkConf(false)
        .set("spark.plugins", "io.weft.spark.WeftPlugin,com.nvidia.spark.SQLPlugin")
        .set("spark.shuffle.manager", "com.nvidia.spark.rapids.spark413.RapidsShuffleManager");
  }

  private String refusal(SparkConf conf) {
    Activation activation = RapidsRole.decide(conf, loader);
    assertThat(activation.runs()).as("it runs: %s", activation).isFalse();
    assertThat(activation.inertReason().orElseThrow())
        .startsWith(
            "spark.shuffle.manager is spark-rapids' manager, but Weft cannot be its transport: ");
    return activation.inertReason().orElseThrow();
  }

  @Test
  void weftIsTheTransportOfItsManager() {
    SparkConf conf = conf();
    assertThat(RapidsRole.isAskedFor(conf)).isTrue();
    Activation activation = RapidsRole.decide(conf, loader);
    assertThat(activation.inertReason()).isEmpty();
    assertThat(activation.runs()).isTrue();
    assertThat(activation.isActive()).isFalse();
    assertThat(activation.otherRole().orElseThrow()).contains("spark-rapids 26.08.1");
    RapidsRole.setUp(conf);
    assertThat(conf.get("spark.rapids.shuffle.mode")).isEqualTo("UCX");
    assertThat(conf.get("spark.rapids.shuffle.transport.class"))
        .isEqualTo(WeftRapidsTransport.class.getName());
    assertThat(RapidsRole.decide(conf, loader).runs()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "spark.rapids.shuffle.mode, MULTITHREADED",
    "spark.rapids.shuffle.transport.class, com.nvidia.spark.rapids.shuffle.ucx.UCXShuffleTransport",
    "spark.authenticate, true",
    "spark.shuffle.service.enabled, true",
    "spark.sql.shuffle.orderIndependentChecksum.enabled, true",
    "spark.weft.transport, tcp"
  })
  void settingsThatSpeakAgainstItAreNamed(String key, String value) {
    assertThat(refusal(conf().set(key, value))).contains(key);
  }

  @Test
  void anEncryptedNetworkIsNamed() {
    assertThat(refusal(conf().set("spark.ssl.rpc.enabled", "true"))).contains("encrypts");
  }

  @Test
  void thePluginsHaveAnOrder() {
    assertThat(
            refusal(
                conf()
                    .set("spark.plugins", "com.nvidia.spark.SQLPlugin, io.weft.spark.WeftPlugin")))
        .contains("Set it to io.weft.spark.WeftPlugin,com.nvidia.spark.SQLPlugin");
    assertThat(refusal(conf().set("spark.plugins", "io.weft.spark.WeftPlugin")))
        .contains("com.nvidia.spark.SQLPlugin");
  }

  @Test
  void aMissingJarIsNamed() throws IOException {
    Files.delete(jar.resolve("com/nvidia/spark/SQLPlugin.class"));
    assertThat(refusal(conf())).contains("com.nvidia:rapids-4-spark_2.13:26.08.1");
  }

  @Test
  void aManagerOfAnotherSparkIsNamed() {
    SparkConf conf =
        conf()
            .set("spark.shuffle.manager", "com.nvidia.spark.rapids.spark350.RapidsShuffleManager");
    assertThat(refusal(conf)).contains("spark-rapids 26.08.1 has no classes for spark350");
  }

  /** Another class under a trait's name simulates a trait with changed methods. */
  @Test
  void anotherTraitIsNamedWithBothVersions() throws IOException {
    Files.writeString(jar.resolve("rapids4spark-version-info.properties"), "version=30.02.0\n");
    Files.delete(jar.resolve("spark-shared/" + SHUFFLE + "BounceBuffer.class"));
    assertThat(refusal(conf()))
        .contains("Weft is built for spark-rapids 26.08.1, and spark-rapids 30.02.0 differs")
        .contains("BounceBuffer");
  }

  @Test
  void usersOfBothPluginsAreToldHowToKeepTablesOnTheGpu() {
    SparkConf conf = conf().remove("spark.shuffle.manager");
    assertThat(RapidsRole.isAskedFor(conf)).isFalse();
    assertThat(RapidsRole.advice(conf).orElseThrow()).contains("RapidsShuffleManager");
    assertThat(RapidsRole.advice(new SparkConf(false))).isEmpty();
  }
}
