package io.weft.compat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.Utils$;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The command {@code bin/weft compat}: one line for each program, which says whether its result
 * with Weft is the one without. Ends with 1 if one is not.
 */
public final class Compat {
  private static final String SOURCE = "plugin.io.weft.spark.WeftPlugin";
  private static final int PROBES = 32;

  private final Path folder;

  private Compat(Path folder) {
    this.folder = folder;
  }

  /**
   * Runs the programs.
   *
   * @param arguments the jar of this class, and parts of the names of the programs to run
   */
  public static void main(String[] arguments) throws IOException {
    Compat compat = new Compat(Path.of(System.getProperty("weft.compat.folder")));
    compat.assembleHome(Path.of(arguments[0]));
    List<String> wanted = List.of(arguments).subList(1, arguments.length);
    boolean equal = true;
    boolean any = false;
    for (Program program : all()) {
      String name = program.name().toLowerCase(Locale.ROOT);
      if (wanted.isEmpty()
          || wanted.stream().anyMatch(part -> name.contains(part.toLowerCase(Locale.ROOT)))) {
        equal &= compat.compare(program);
        any = true;
      }
    }
    if (!any) {
      System.out.println("No program has a name with " + wanted);
    }
    System.exit(equal && any ? 0 : 1);
  }

  private static List<Program> all() {
    return Stream.of(
            JobPrograms.all(),
            MachineLearning.all(),
            StreamingPrograms.all(),
            ConnectProgram.all(),
            TablePrograms.all())
        .flatMap(Collection::stream)
        .toList();
  }

  /** A folder with all jars of this class path, in which local-cluster starts executors. */
  private void assembleHome(Path ownJar) throws IOException {
    Path home = folder.resolve("spark-home");
    delete(home);
    Path jars = Files.createDirectories(home.resolve("jars"));
    Files.writeString(home.resolve("RELEASE"), "Spark for programs of others\n");
    Set<Path> all = new LinkedHashSet<>(Set.of(ownJar));
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      if (entry.endsWith(".jar")) {
        all.add(Path.of(entry));
      }
    }
    for (Path jar : all) {
      Files.createSymbolicLink(jars.resolve(jar.getFileName()), jar);
    }
  }

  private boolean compare(Program program) {
    Result without = run(program, false);
    if (without.error() != null) {
      return say("fails without Weft", program, without.reason());
    }
    Result with = run(program, true);
    if (with.error() != null) {
      return say("refused", program, with.reason());
    }
    if (!with.lines().equals(without.lines())) {
      return say("differs", program, difference(without.lines(), with.lines()));
    }
    if (with.published() == 0) {
      return say("not by Weft", program, "no map output went through Weft");
    }
    String figures =
        "%d lines, %d map outputs by Weft".formatted(with.lines().size(), with.published());
    if (program.streams()) {
      StreamTotals streams = with.streams();
      if (streams.shuffles() == 0 || streams.readBytes() == 0 || streams.bySpark() > 0) {
        return say("not streams", program, streams.toString());
      }
      figures += ", " + streams;
    }
    return !say("equal", program, figures);
  }

  /** Prints a line. Always false, for the callers that report a failure. */
  private static boolean say(String outcome, Program program, String detail) {
    System.out.printf("%-8s %s: %s%n", outcome, program.name(), detail);
    return false;
  }

  private static String difference(List<String> expected, List<String> actual) {
    List<String> missing = new ArrayList<>(expected);
    missing.removeAll(actual);
    List<String> more = new ArrayList<>(actual);
    more.removeAll(expected);
    return "%d lines instead of %d; missing %s, not expected %s"
        .formatted(actual.size(), expected.size(), first(missing), first(more));
  }

  private static List<String> first(List<String> lines) {
    return lines.subList(0, Math.min(2, lines.size()));
  }

  /** The result of all sessions of a program, or its error. */
  private record Result(List<String> lines, long published, StreamTotals streams, Exception error) {
    String reason() {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return String.valueOf(cause).lines().findFirst().orElse("");
    }
  }

  private Result run(Program program, boolean weft) {
    List<String> lines = new ArrayList<>();
    Set<Path> left = new HashSet<>();
    long published = 0;
    StreamTotals streams = StreamTotals.NONE;
    for (int i = 0; i < program.sessions(); i++) {
      Path files = folder.resolve("files");
      SparkSession session = null;
      try {
        delete(files);
        Files.createDirectories(files);
        session = start(program, weft);
        lines.addAll(program.body().run(session, files));
        published += published(session);
        if (weft && program.streams()) {
          streams = StreamTotals.of(session.sparkContext());
        }
      } catch (Exception e) {
        return new Result(lines, published, streams, e);
      } finally {
        Set<Path> used = weftFolders();
        stop(session);
        left.addAll(remaining(used));
      }
    }
    Exception error = left.isEmpty() ? null : new IllegalStateException("left behind: " + left);
    return new Result(lines, published, streams, error);
  }

  /** Weft's folders in which the executors, or this JVM, have files open. */
  private static Set<Path> weftFolders() {
    Set<Path> folders = new HashSet<>();
    ProcessHandle own = ProcessHandle.current();
    Stream.concat(Stream.of(own), own.descendants())
        .map(process -> new File("/proc/" + process.pid() + "/fd").listFiles())
        .filter(Objects::nonNull)
        .flatMap(Arrays::stream)
        .forEach(descriptor -> target(descriptor.toPath()).ifPresent(folders::add));
    return folders;
  }

  /** The folder of an open file, if it is of one executor, not of all. */
  private static Optional<Path> target(Path descriptor) {
    try {
      Path folder = Files.readSymbolicLink(descriptor).getParent();
      return folder != null && folder.toString().matches(".*/weft-[^/]+/.+")
          ? Optional.of(folder)
          : Optional.empty();
    } catch (IOException e) {
      // Closed by now.
      return Optional.empty();
    }
  }

  /** The folders that are there after the time that executors need to end. */
  private static Set<Path> remaining(Set<Path> folders) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    Set<Path> left = new HashSet<>(folders);
    left.removeIf(Files::notExists);
    while (!left.isEmpty() && System.nanoTime() < end) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
      left.removeIf(Files::notExists);
    }
    return left;
  }

  private SparkSession start(Program program, boolean weft) {
    Utils$.MODULE$.clearLocalRootDirs();
    SparkSession.Builder builder =
        SparkSession.builder()
            .master(program.master())
            .appName(program.name())
            // The Weft tab tells the routes of shuffles.
            .config("spark.ui.enabled", Boolean.toString(weft && program.streams()))
            .config("spark.ui.port", "0")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.local.dir", folder.resolve("local").toString())
            .config("spark.sql.warehouse.dir", folder.resolve("files/warehouse").toString())
            .config("spark.sql.shuffle.partitions", "6")
            .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1");
    program.settings().forEach(builder::config);
    if (weft) {
      builder.config("spark.plugins", "io.weft.spark.WeftPlugin");
    }
    return builder.getOrCreate();
  }

  private static void stop(SparkSession session) {
    if (session != null) {
      session.stop();
    }
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
  }

  /** The map outputs that Weft published, as far as tasks reach the executors. */
  private static long published(SparkSession session) {
    List<Integer> numbers = new ArrayList<>(IntStream.range(0, PROBES).boxed().toList());
    Map<String, Long> byExecutor =
        new JavaSparkContext(session.sparkContext())
                .parallelize(numbers, PROBES)
                .mapToPair(number -> new Tuple2<>(SparkEnv.get().executorId(), ownPublished()))
                .collect()
                .stream()
                .collect(Collectors.toMap(Tuple2::_1, Tuple2::_2, Math::max));
    return byExecutor.values().stream().mapToLong(Long::longValue).sum();
  }

  private static Long ownPublished() {
    return CollectionConverters.asJava(SparkEnv.get().metricsSystem().getSourcesByName(SOURCE))
        .stream()
        .map(source -> source.metricRegistry().getGauges().get("outputsPublished"))
        .map(gauge -> gauge == null ? 0 : ((Number) gauge.getValue()).longValue())
        .mapToLong(Long::longValue)
        .sum();
  }

  private static void delete(Path folder) throws IOException {
    if (!Files.exists(folder)) {
      return;
    }
    try (Stream<Path> entries = Files.walk(folder)) {
      for (Path entry : entries.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(entry);
      }
    }
  }
}
