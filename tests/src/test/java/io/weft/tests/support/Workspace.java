package io.weft.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionTimeoutException;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.opentest4j.TestAbortedException;

/**
 * The folders of one class of tests, and the check that they are empty at its end. Use a static
 * field with {@code @RegisterExtension}. Weft gets a separate shared-memory folder for the class,
 * so that other builds on this machine cause no false leak reports. The failure of a test names the
 * errors in the logs of executors that ran since the class began.
 */
public final class Workspace
    implements BeforeAllCallback,
        AfterAllCallback,
        TestExecutionExceptionHandler,
        LifecycleMethodExecutionExceptionHandler {
  private static final Duration LIMIT = Duration.ofMinutes(3);
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final AtomicInteger APPLICATIONS = new AtomicInteger();

  private Path folder;
  private Path sharedMemory;
  private Instant began = Instant.MAX;

  /** Processes that another extension of the test has started, such as a network. */
  private Set<ProcessHandle> before = Set.of();

  /** Opens the folders, as the extension does before the class. */
  public void open(String name) {
    began = Instant.now();
    before = ProcessHandle.current().descendants().collect(Collectors.toSet());
    try {
      folder = BuildTree.newFolder(name);
      Files.createDirectories(localFolder());
      sharedMemory =
          Files.isWritable(SHARED_MEMORY)
              ? Files.createTempDirectory(SHARED_MEMORY, "tests-of-weft-")
              : Files.createDirectories(folder.resolve("shm"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Checks for leaks, deletes the folder in shared memory, and fails if files were left. */
  public void close() {
    String left = leftovers();
    Folders.delete(sharedMemory);
    if (!left.isEmpty()) {
      throw new AssertionError("Left behind by " + folder.getFileName() + ":\n" + left);
    }
    Folders.delete(folder);
  }

  /** The folder for a test's own files. */
  public Path folder() {
    return folder;
  }

  /** Spark's local folder. */
  public Path localFolder() {
    return folder.resolve("local");
  }

  /** Weft's folder in shared memory. */
  public Path sharedMemory() {
    return sharedMemory;
  }

  /** The settings that direct Spark and Weft to these folders. */
  public Map<String, String> settings() {
    Map<String, String> settings = new LinkedHashMap<>();
    settings.put("spark.local.dir", localFolder().toString());
    settings.put("spark.sql.warehouse.dir", folder.resolve("warehouse").toString());
    settings.put("spark.weft.memory.folder", sharedMemory.toString());
    settings.put("spark.deploy.appIdPattern", applicationIds());
    // Tests of failures must not fall back to Spark's shuffle.
    settings.put("spark.weft.fallback.failures", "0");
    return settings;
  }

  /**
   * Ids that no application of another JVM has. By default, two local clusters that start in the
   * same second have the same id. Their executors then write to the same logs, in which tests look
   * for messages.
   */
  private static String applicationIds() {
    return "app-%s-%04d-" + ProcessHandle.current().pid() + "-" + APPLICATIONS.incrementAndGet();
  }

  /** Waits until no file of Weft is left in the folders. */
  public void awaitNoFiles() {
    Awaitility.await("no file of Weft left in " + sharedMemory + " and " + localFolder())
        .atMost(LIMIT)
        .untilAsserted(
            () -> {
              if (!files().isEmpty()) {
                throw new AssertionError("Left: " + files());
              }
            });
  }

  /** Weft's files and folders in shared memory and in the local folder. */
  public List<Path> files() {
    Stream<Path> local =
        Folders.tree(localFolder()).stream()
            .filter(path -> path.getFileName().toString().contains("weft"));
    return Stream.concat(Folders.tree(sharedMemory).stream(), local).toList();
  }

  private String leftovers() {
    try {
      Awaitility.await().atMost(LIMIT).until(() -> found().isEmpty());
      return "";
    } catch (ConditionTimeoutException e) {
      return found();
    }
  }

  private String found() {
    StringBuilder found = new StringBuilder();
    files().forEach(path -> found.append("  file ").append(path).append('\n'));
    ProcessHandle.current()
        .descendants()
        .filter(child -> !before.contains(child))
        .forEach(
            child ->
                found
                    .append("  process ")
                    .append(child.pid())
                    .append(' ')
                    .append(child.info())
                    .append('\n'));
    threads().forEach(name -> found.append("  thread ").append(name).append('\n'));
    mappings().forEach(line -> found.append("  mapping ").append(line).append('\n'));
    return found.toString();
  }

  /** The names of Weft's threads in this JVM. */
  public static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("weft"))
        .sorted()
        .toList();
  }

  /** The lines of this process's memory map that name a file in the folders. */
  public List<String> mappings() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines
          .filter(
              line ->
                  line.contains(sharedMemory.toString()) || line.contains(localFolder() + "/weft"))
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    open(context.getRequiredTestClass().getSimpleName());
  }

  @Override
  public void afterAll(ExtensionContext context) {
    close();
  }

  @Override
  public void handleTestExecutionException(ExtensionContext context, Throwable failure)
      throws Throwable {
    throw withExecutorErrors(failure);
  }

  @Override
  public void handleBeforeAllMethodExecutionException(ExtensionContext context, Throwable failure)
      throws Throwable {
    throw withExecutorErrors(failure);
  }

  @Override
  public void handleBeforeEachMethodExecutionException(ExtensionContext context, Throwable failure)
      throws Throwable {
    throw withExecutorErrors(failure);
  }

  /**
   * Returns a failure whose message also has the errors of executors: a test report often shows
   * only messages. An aborted assumption stays as it is.
   */
  Throwable withExecutorErrors(Throwable failure) {
    if (failure instanceof TestAbortedException) {
      return failure;
    }
    List<String> errors = ExecutorErrors.since(began);
    return errors.isEmpty()
        ? failure
        : new AssertionError(
            failure.getMessage() + "\nErrors of executors:\n" + String.join("\n", errors), failure);
  }
}
