package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.config.Activation;
import io.weft.spark.rapids.RapidsJar.ClassFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.tree.ClassNode;
import org.apache.xbean.asm9.tree.MethodNode;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Reads class files of the real jar; nothing of it is run. */
class RealRapidsTest {
  private static final Path JAR = Path.of(System.getProperty("weft.rapids.jar"));
  private static final Path STUBS =
      Path.of("..", "..", "spark-plugin", "rapids-stubs", "target", "classes").toAbsolutePath();
  private static final String TRAIT =
      "/com/nvidia/spark/rapids/shuffle/RapidsShuffleTransport.class";

  private static URLClassLoader loader;

  @BeforeAll
  static void open() throws MalformedURLException {
    // Without the stubs, which are on the class path of this test.
    loader =
        new URLClassLoader(new URL[] {JAR.toUri().toURL()}, SparkConf.class.getClassLoader()) {
          @Override
          public URL getResource(String name) {
            return name.contains("com/nvidia/") || name.contains("ai/rapids/")
                ? findResource(name)
                : super.getResource(name);
          }
        };
  }

  @AfterAll
  static void close() throws IOException {
    loader.close();
  }

  /** The folders of Spark versions that Weft runs on. */
  static List<String> shims() throws IOException {
    try (JarFile jar = new JarFile(JAR.toFile())) {
      return jar.stream()
          .map(entry -> entry.getName())
          .filter(name -> name.startsWith("spark4") && name.endsWith(TRAIT))
          .map(name -> name.substring(0, name.indexOf('/')))
          .filter(name -> !name.contains("db"))
          .sorted()
          .toList();
    }
  }

  @ParameterizedTest
  @MethodSource("shims")
  void weftCanBeTheTransportOfTheRealManager(String shim) {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.plugins", RapidsRole.PLUGINS)
            .set(
                Activation.MANAGER_KEY,
                "com.nvidia.spark.rapids." + shim + ".RapidsShuffleManager");
    Activation activation = RapidsRole.decide(conf, loader);
    assertThat(activation.inertReason()).isEmpty();
    assertThat(activation.otherRole().orElseThrow()).contains("spark-rapids ");
  }

  @ParameterizedTest
  @MethodSource("shims")
  void theRealClassesHaveWhatTheStubsHave(String shim) throws IOException {
    ClassFiles real = ClassFiles.of(loader, List.of("", shim + "/", "spark-shared/"));
    List<String> missing = new ArrayList<>();
    try (Stream<Path> files = Files.walk(STUBS);
        URLClassLoader stubs = new URLClassLoader(new URL[] {STUBS.toUri().toURL()}, null)) {
      ClassFiles own = ClassFiles.of(stubs, List.of(""));
      files
          .map(file -> STUBS.relativize(file).toString())
          .filter(name -> name.endsWith(".class") && !name.endsWith("package-info.class"))
          .map(name -> name.substring(0, name.length() - ".class".length()))
          .forEach(name -> compare(own.read(name).orElseThrow(), real, missing));
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
    assertThat(missing).isEmpty();
  }

  private static void compare(ClassNode stub, ClassFiles real, List<String> missing) {
    if ((stub.access & Opcodes.ACC_PUBLIC) == 0) {
      return;
    }
    if (real.read(stub.name).isEmpty()) {
      missing.add(stub.name);
      return;
    }
    int kind = Opcodes.ACC_INTERFACE | Opcodes.ACC_ABSTRACT;
    if ((real.read(stub.name).get().access & kind) != (stub.access & kind)) {
      missing.add(stub.name + " is of another kind");
    }
    for (MethodNode method : stub.methods) {
      boolean isPublic = (method.access & Opcodes.ACC_PUBLIC) != 0;
      if (isPublic && !has(real, stub.name, method)) {
        missing.add(stub.name + "." + method.name + method.desc);
      }
    }
  }

  private static boolean has(ClassFiles real, String owner, MethodNode wanted) {
    if (real.read(owner).isEmpty()) {
      return false;
    }
    ClassNode node = real.read(owner).get();
    boolean here =
        node.methods.stream()
            .anyMatch(
                each ->
                    each.name.equals(wanted.name)
                        && each.desc.equals(wanted.desc)
                        && (each.access & Opcodes.ACC_STATIC)
                            == (wanted.access & Opcodes.ACC_STATIC));
    return here
        || (node.superName != null && has(real, node.superName, wanted))
        || node.interfaces.stream().anyMatch(each -> has(real, each, wanted));
  }
}
