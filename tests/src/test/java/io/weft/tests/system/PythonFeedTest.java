package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.Python;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * The wheel in use: its settings start an application on two executors, whose feed two processes of
 * Python read, one per rank.
 */
class PythonFeedTest {
  private static final Duration LIMIT = Duration.ofMinutes(3);
  private static final int ROWS = 4000;

  private static final String SETTINGS =
      """
      import weft
      for name, value in weft.spark_conf().items():
          print("setting", name, value)
      """;

  private static final String READER =
      """
      import sys, weft
      name, rank = sys.argv[1], int(sys.argv[2])
      with weft.Feed(name, rank, timeout=110) as feed:
          print("open", len(feed))
          sys.stdin.readline()
          for epoch in range(2):
              ids = [int(i) for batch in feed for i in batch["id"]]
              assert all((batch["x"][:, 1] == batch["id"] + 1).all() for batch in feed.epoch(epoch))
              print("ids", epoch, *ids)
      """;

  private static final String LATE_READER =
      """
      import sys, weft
      try:
          weft.Feed(sys.argv[1], 0, timeout=0.2)
      except weft.FeedTimeout as e:
          print("timeout:", e)
      """;

  private static final String CHECK_RECORD =
      """
      import base64, csv, glob, hashlib, os
      import weft
      record, = glob.glob("weft_spark-*.dist-info/RECORD")
      listed = set()
      for name, hashed, size in csv.reader(open(record)):
          listed.add(name)
          if name != record:
              data = open(name, "rb").read()
              digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
              assert hashed == "sha256=" + digest and int(size) == len(data), name
              print("checked", name)
      found = {os.path.join(at, f)[2:] for at, _, files in os.walk(".") for f in files}
      assert {f for f in found if "__pycache__" not in f} == listed, found ^ listed
      assert record.startswith("weft_spark-" + weft.__version__ + "."), weft.__version__
      """;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static Conversation application(Map<String, String> settings) {
    Submission submission =
        new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
            .master("local-cluster[2,1,1024]");
    settings.forEach(submission::set);
    return Conversation.open(WORKSPACE, submission);
  }

  private static Map<String, String> settings(Python python) {
    try (ChildProcess child = python.start("settings", SETTINGS)) {
      child.awaitSuccess(LIMIT);
      Map<String, String> settings = new HashMap<>();
      for (String line : child.lines(each -> each.startsWith("setting "))) {
        String[] parts = line.split(" ", 3);
        settings.put(parts[1], parts[2]);
      }
      return settings;
    }
  }

  private static List<Long> ids(ChildProcess reader, int epoch) {
    List<Long> ids = new ArrayList<>();
    String line = reader.awaitLine("^ids " + epoch + " (.*)", LIMIT).group(1);
    for (String id : line.split(" ")) {
      ids.add(Long.valueOf(id));
    }
    return ids;
  }

  /** SIGKILL for driver and executors: what a reader has open, it reads to the end. */
  @Test
  void readersOutliveAKilledApplication() throws IOException {
    Answers.prepare(List.of()); // The application registers the tables.
    Path packages = Files.createDirectory(WORKSPACE.folder().resolve("packages"));
    Python python = Python.install(wheel(), packages);
    Map<String, String> settings = settings(python);
    assertThat(settings).containsEntry("spark.plugins", "io.weft.spark.WeftPlugin");
    assertThat(Path.of(settings.get("spark.jars"))).startsWith(packages).isRegularFile();
    Path folder = WORKSPACE.folder().resolve("features");
    try (Conversation talk = application(settings);
        ChildProcess first = python.start("rank 0", READER, folder, 0);
        ChildProcess second = python.start("rank 1", READER, folder, 1)) {
      talk.order(
          ("sql CREATE TABLE features USING weft OPTIONS (ranks 2, batchRows 50, shuffleSeed 17,"
                  + " `tensor.x` 'int64[2]') LOCATION '%s'"
                  + " AS SELECT id, array(id, id + 1) AS x FROM range(0, %d, 1, 4)")
              .formatted(folder, ROWS));
      first.awaitLine("open 40", LIMIT);
      second.awaitLine("open 40", LIMIT);
      talk.close();
      // The next application removes what the killed one left, but not what is locked.
      try (Conversation next = application(settings)) {
        assertThat(WORKSPACE.files())
            .extracting(file -> file.getFileName().toString())
            .contains("rank-0.arrow", "rank-1.arrow");
        first.send("go on");
        second.send("go on");
        check(first, second);
        next.quit();
      }
    }
    // Executors sweep folders of other applications when they start.
    try (Conversation last = application(settings)) {
      last.quit();
    }
    WORKSPACE.awaitNoFiles();
    try (ChildProcess late = python.start("late", LATE_READER, folder)) {
      assertThat(late.awaitLine("timeout: (.*)", LIMIT).group(1))
          .contains("the file of rank 0 is on host", "or was freed because");
    }
  }

  /** Both ranks together read every row in each epoch, each epoch in another order. */
  private static void check(ChildProcess first, ChildProcess second) {
    for (int epoch = 0; epoch < 2; epoch++) {
      List<Long> all = new ArrayList<>(ids(first, epoch));
      all.addAll(ids(second, epoch));
      assertThat(all)
          .containsExactlyInAnyOrderElementsOf(LongStream.range(0, ROWS).boxed().toList());
    }
    assertThat(ids(first, 0)).isNotEqualTo(ids(first, 1));
    first.awaitSuccess(LIMIT);
    second.awaitSuccess(LIMIT);
  }

  private static Path wheel() throws IOException {
    try (Stream<Path> files = Files.list(BuildTree.weftJar().getParent())) {
      List<Path> wheels = files.filter(file -> file.toString().endsWith(".whl")).toList();
      assertThat(wheels).hasSize(1);
      return wheels.get(0);
    }
  }

  /** Installers compare files with the record; a repeated build makes the same bytes. */
  @Test
  void theWheelIsCompleteAndReproducible() throws IOException {
    Path again = build("again", wheel().getFileName());
    assertThat(again).hasSameBinaryContentAs(wheel());
    Python python = Python.install(wheel(), again.resolveSibling("packages"));
    try (ChildProcess check = python.start("record", CHECK_RECORD)) {
      check.awaitSuccess(LIMIT);
      assertThat(check.output()).contains("dist-info/licenses/LICENSE", ".jar");
      Path sources = BuildTree.root().resolve("spark-plugin/src/main/python/weft");
      try (Stream<Path> modules = Files.list(sources)) {
        assertThat(check.output())
            .contains(
                modules
                    .filter(Files::isRegularFile)
                    .map(module -> "checked weft/" + module.getFileName())
                    .toList());
      }
    }
  }

  /** Builds the wheel as Maven does, in a new folder. */
  private static Path build(String folder, Path name) throws IOException {
    Path target = Files.createDirectory(WORKSPACE.folder().resolve(folder));
    Path plugin = BuildTree.root().resolve("spark-plugin");
    ChildProcess.run(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        plugin.resolve("src/build/java/Wheel.java").toString(),
        plugin.resolve("src/main/python").toString(),
        BuildTree.weftJar().toString(),
        BuildTree.root().resolve("LICENSE").toString(),
        BuildTree.weftVersion(),
        "2026-11-20T00:00:00Z",
        target.toString());
    return target.resolve(name);
  }
}
