package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Native;
import io.weft.examples.etl.GpuTraining;
import io.weft.tests.application.GpuSqlJob;
import io.weft.tests.support.ApplicationJar;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.DoubleGpus;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.net.MalformedURLException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jcuda.driver.JCudaDriver;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * The example of {@code weft gpu-train}, whose kernel runs through JCuda's own native code, in two
 * executors with a GPU each, on the doubles of libcuda and libnccl.
 */
class GpuTrainingTest {
  private static final int ROWS = 6000;
  private static final int BATCH_ROWS = 100;
  private static final int EPOCHS = 4;

  /** Of two classes that are equally likely. */
  private static final double GUESS = Math.log(2);

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static WeftCluster cluster;

  @BeforeAll
  static void start() {
    DoubleGpus.assume();
    cluster = new WeftCluster(WORKSPACE);
    DoubleGpus.settings(WORKSPACE.folder()).forEach(cluster::set);
    cluster.set(
        "spark.jars",
        Stream.of(
                BuildTree.weftJar(),
                ApplicationJar.get(),
                BuildTree.examplesJar(),
                jar(Native.class.getResource("Native.class")),
                jar(JCudaDriver.class.getResource("JCudaDriver.class")),
                jar(JCudaDriver.class.getResource("/lib/libJCudaDriver-12.6.0-linux-x86_64.so")))
            .map(Path::toString)
            .collect(Collectors.joining(",")));
    cluster.start();
  }

  @AfterAll
  static void stop() {
    if (cluster != null) {
      cluster.stop();
    }
  }

  /** The jar of a resource, of the form jar:file:/folder/name.jar!/entry. */
  private static Path jar(URL resource) {
    String jar = resource.getPath().replaceFirst("!.*", "");
    try {
      return Path.of(new URL(jar).toURI());
    } catch (MalformedURLException | URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void featuresAreThoseOfSparkAndTheModelLearnsFromThem() {
    cluster.awaitExecutors();
    String folder = WORKSPACE.folder().resolve("training").toString();
    GpuTraining.Outcome outcome =
        new GpuTraining(folder, ROWS, 2, BATCH_ROWS, EPOCHS).run(cluster.session());
    assertThat(outcome.different()).as("rows that differ from Spark's").isZero();
    assertThat(outcome.rows()).isEqualTo(ROWS);
    assertThat(outcome.trained()).isEqualTo((long) ROWS * EPOCHS);
    assertThat(outcome.firstLoss()).isCloseTo(GUESS, Offset.offset(1e-3));
    assertThat(outcome.lastLoss()).isLessThan(GUESS - 0.1);
    List<GpuSqlJob.Answer> answers =
        new GpuSqlJob(DoubleGpus.libcuda(WORKSPACE.folder()).toString(), null)
            .ask(cluster.session());
    assertThat(answers).extracting(GpuSqlJob.Answer::violations).containsOnly("");
    assertThat(answers).extracting(GpuSqlJob.Answer::gpu).containsExactlyInAnyOrder(0, 1);
  }
}
