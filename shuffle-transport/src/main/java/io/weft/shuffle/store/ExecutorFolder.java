package io.weft.shuffle.store;

import io.weft.shuffle.store.FolderSweep.ExecutorFiles;
import io.weft.shuffle.store.Lease.FolderLeases;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This executor's folder on this host. It tells other processes that the executor is alive and
 * holds the executor's memory. It is removed by {@link #close}, by a shutdown hook, or by the next
 * sweep of another executor of this user.
 *
 * <p>Thread-safe.
 */
public final class ExecutorFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorFolder.class);
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final long SWEEP_PERIOD_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** Retries, because another process may remove an empty parent folder at any time. */
  private static final int ATTEMPTS = 100;

  private final Path path;
  private final String incarnation;
  private final String token;
  private final LockedFile alive;
  private final Thread exitHook = new Thread(this::closeAtExit, "weft-folder-close");
  private final AtomicBoolean closed = new AtomicBoolean();
  private final LongSupplier clock;
  private final AtomicLong lastSweep;

  private ExecutorFolder(
      Path path, String incarnation, String token, LockedFile alive, LongSupplier clock) {
    this.path = path;
    this.incarnation = incarnation;
    this.token = token;
    this.alive = alive;
    this.clock = clock;
    this.lastSweep = new AtomicLong(clock.getAsLong());
  }

  /**
   * Removes the folders of dead executors of this user and creates this executor's folder.
   *
   * @param applicationKey application id with a random part, the same for all its executors
   * @throws IOException if the folder cannot be created, or another user owns a file with its name
   */
  public static ExecutorFolder create(HostRoot root, String applicationKey, String executorId)
      throws IOException {
    // Use the real path, so that the folder has only one name in this process.
    HostRoot real = new HostRoot(root.path().toRealPath(), root.sharedMemory(), Optional.empty());
    return create(real.userFolder(), applicationKey, executorId, System::nanoTime);
  }

  static ExecutorFolder create(
      Path user, String applicationKey, String executorId, LongSupplier clock) throws IOException {
    FolderSweep.user(user);
    Path application = user.resolve(FolderNames.sanitized(applicationKey));
    for (int attempt = 1; ; attempt++) {
      try {
        PrivateFolders.ensure(user);
        PrivateFolders.ensure(application);
        return createIn(application, executorId, clock);
      } catch (NoSuchFileException e) {
        if (attempt == ATTEMPTS) {
          throw new IOException("the folder " + application + " was removed again and again", e);
        }
      }
    }
  }

  /** Creates the folder under a name that sweeps ignore, locks it and renames it. */
  private static ExecutorFolder createIn(Path application, String executorId, LongSupplier clock)
      throws IOException {
    String incarnation = FolderNames.randomHex(8);
    String name = FolderNames.sanitized(executorId) + "-" + incarnation;
    Path starting = application.resolve(FolderNames.STARTING_PREFIX + name);
    Files.createDirectory(starting, PrivateFolders.FOLDER);
    try {
      String token = FolderNames.randomHex(32);
      writeToken(starting, token);
      Path path = application.resolve(name);
      LockedFile alive =
          LockedFile.create(starting.resolve(FolderNames.ALIVE), path.resolve(FolderNames.ALIVE));
      ExecutorFolder folder = new ExecutorFolder(path, incarnation, token, alive, clock);
      folder.takePlace(starting);
      return folder;
    } catch (IOException | RuntimeException | Error e) {
      ExecutorFiles.remove(starting);
      throw e;
    }
  }

  private void takePlace(Path starting) throws IOException {
    try {
      Files.move(starting, path, StandardCopyOption.ATOMIC_MOVE);
      Runtime.getRuntime().addShutdownHook(exitHook);
    } catch (IOException | RuntimeException | Error e) {
      alive.close();
      throw e;
    }
  }

  private static void writeToken(Path folder, String token) throws IOException {
    Path file = Files.createFile(folder.resolve(FolderNames.TOKEN), PrivateFolders.FILE);
    Files.writeString(file, token, StandardCharsets.US_ASCII, StandardOpenOption.WRITE);
  }

  /** The path of the folder. */
  public Path path() {
    return path;
  }

  /** 32 hex characters that other processes can read only in the folder. */
  public String token() {
    return token;
  }

  /** Eight hex characters that distinguish this executor from earlier ones with the same id. */
  public String incarnation() {
    return incarnation;
  }

  /** The boot id of the kernel; "unknown" if the system has none. */
  public String bootId() {
    return currentBootId();
  }

  /** As {@link #bootId}, without a folder. */
  public static String currentBootId() {
    try {
      return read(BOOT_ID).trim();
    } catch (IOException e) {
      return "unknown";
    }
  }

  /** Reads with a stream, which an interrupt does not close. */
  private static String read(Path file) throws IOException {
    try (FileInputStream in = new FileInputStream(file.toFile())) {
      return new String(in.readAllBytes(), StandardCharsets.US_ASCII);
    }
  }

  /**
   * Whether an executor runs on this kernel and its folder is visible to this process. Host names
   * are not used, because containers and clouds may reuse them.
   */
  public static boolean isReachable(String bootId, Path folder, String token) {
    if (!currentBootId().equals(bootId)) {
      return false;
    }
    try {
      return read(folder.resolve(FolderNames.TOKEN)).equals(token);
    } catch (IOException e) {
      return false;
    }
  }

  /** The leases of readers on this executor's memory. */
  public FolderLeases leases() {
    return new FolderLeases(path);
  }

  /**
   * Removes the folders of dead executors of this application on this host. Runs at most once in
   * ten seconds; other calls do nothing.
   */
  public void sweep() {
    long now = clock.getAsLong();
    long last = lastSweep.get();
    if (now - last >= SWEEP_PERIOD_NANOS && lastSweep.compareAndSet(last, now)) {
      FolderSweep.application(path.getParent());
    }
  }

  /**
   * Removes the folder, its contents and the targets of its links. Then sweeps the application and
   * removes empty parent folders. Can be repeated.
   */
  @Override
  public void close() {
    if (remove()) {
      FolderSweep.application(path.getParent());
      removeParents(path);
    }
    try {
      Runtime.getRuntime().removeShutdownHook(exitHook);
    } catch (IllegalStateException e) {
      LOG.debug("The JVM is shutting down; the folder is already removed");
    }
  }

  /** Runs as a shutdown hook. This process may still hold leases, which the sweep closes. */
  private void closeAtExit() {
    if (remove()) {
      FolderSweep.atExit(FolderSweep.entries(path.getParent()));
      removeParents(path);
    }
  }

  /** Removes the folder. Returns false if it was removed before. */
  private boolean remove() {
    if (!closed.compareAndSet(false, true)) {
      return false;
    }
    try (alive) {
      ExecutorFiles.remove(path);
    } catch (IOException e) {
      LOG.warn("The folder {} was not removed: {}", path, e.toString());
    }
    return true;
  }

  static void removeParents(Path executor) {
    FolderSweep.removeIfEmpty(executor.getParent());
    FolderSweep.removeIfEmpty(executor.getParent().getParent());
  }
}
