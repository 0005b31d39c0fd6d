package io.weft.shuffle.store;

import com.google.errorprone.annotations.concurrent.GuardedBy;
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
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This executor's folder on this host. It tells other processes that the executor is alive and
 * holds the executor's memory. It is removed by {@link #close}, by a shutdown hook, or by the next
 * sweep of another executor of this user. If another program deletes it, such as a cleaner or
 * systemd at the user's logout, {@link #restore} creates it again.
 *
 * <p>Thread-safe.
 */
public final class ExecutorFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorFolder.class);
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final long SWEEP_PERIOD_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** Retries, because another process may remove an empty parent folder at any time. */
  private static final int ATTEMPTS = 100;

  private static final long RESTORE_TIMEOUT_SECONDS = 10;

  private final Path path;
  private final String incarnation;
  private final String token;
  private final boolean inMemory;
  private final boolean adoptable;
  private final Thread exitHook = new Thread(this::closeAtExit, "weft-folder-close");
  private final AtomicBoolean closed = new AtomicBoolean();
  private final LongSupplier clock;
  private final AtomicLong lastSweep;
  private final AtomicBoolean warned = new AtomicBoolean();
  private volatile Runnable loss = () -> {};
  private volatile Duration kept = Duration.ZERO;

  /** Whether memory that was found in the folder, which is deleted now, cannot be used again. */
  private volatile boolean lossHandled;

  /** One thread at a time restores or removes the folder. */
  private final ReentrantLock change = new ReentrantLock();

  @GuardedBy("change")
  private LockedFile alive;

  private ExecutorFolder(
      Path path,
      String incarnation,
      String token,
      boolean adoptable,
      LockedFile alive,
      LongSupplier clock) {
    this.path = path;
    this.adoptable = adoptable;
    this.incarnation = incarnation;
    this.token = token;
    this.alive = alive;
    this.inMemory = HostRoot.isMemory(path);
    this.clock = clock;
    this.lastSweep = new AtomicLong(clock.getAsLong());
  }

  /**
   * Removes the folders of dead executors of this user and creates this executor's folder.
   *
   * @param applicationKey application id with a random part, the same for all its executors
   * @param adoptable whether other executors of the application may adopt what this one leaves when
   *     it dies. Then this executor removes no folder of the application now
   * @throws IOException if the folder cannot be created, or another user owns a file with its name
   */
  public static ExecutorFolder create(
      HostRoot root, String applicationKey, String executorId, boolean adoptable)
      throws IOException {
    // Use the real path, so that the folder has only one name in this process.
    HostRoot real = new HostRoot(root.path().toRealPath(), root.sharedMemory(), Optional.empty());
    return create(real.userFolder(), applicationKey, executorId, adoptable, System::nanoTime);
  }

  static ExecutorFolder create(
      Path user, String applicationKey, String executorId, boolean adoptable, LongSupplier clock)
      throws IOException {
    Path application = user.resolve(FolderNames.sanitized(applicationKey));
    FolderSweep.user(user, adoptable ? Optional.of(application) : Optional.empty());
    String incarnation = FolderNames.randomHex(8);
    Path path = application.resolve(FolderNames.sanitized(executorId) + "-" + incarnation);
    String token = FolderNames.randomHex(32);
    LockedFile alive = make(path, token, adoptable);
    ExecutorFolder folder = new ExecutorFolder(path, incarnation, token, adoptable, alive, clock);
    try {
      Runtime.getRuntime().addShutdownHook(folder.exitHook);
    } catch (IllegalStateException e) {
      folder.close();
      throw e;
    }
    return folder;
  }

  /** Creates the folder and its parents. Returns the lock that shows that this process lives. */
  private static LockedFile make(Path path, String token, boolean adoptable) throws IOException {
    Path application = path.getParent();
    for (int attempt = 1; ; attempt++) {
      try {
        PrivateFolders.ensure(application.getParent());
        PrivateFolders.ensure(application);
        return makeOnce(path, token, adoptable);
      } catch (NoSuchFileException e) {
        if (attempt == ATTEMPTS) {
          throw new IOException("the folder " + application + " was removed again and again", e);
        }
      }
    }
  }

  /** Creates the folder under a name that sweeps ignore, locks it and renames it. */
  private static LockedFile makeOnce(Path path, String token, boolean adoptable)
      throws IOException {
    Path starting = path.resolveSibling(FolderNames.STARTING_PREFIX + path.getFileName());
    Files.createDirectory(starting, PrivateFolders.FOLDER);
    LockedFile alive = null;
    try {
      writeToken(starting, token);
      if (adoptable) {
        Files.createFile(starting.resolve(FolderNames.ADOPTABLE), PrivateFolders.FILE);
      }
      alive =
          LockedFile.create(starting.resolve(FolderNames.ALIVE), path.resolve(FolderNames.ALIVE));
      Files.move(starting, path, StandardCopyOption.ATOMIC_MOVE);
      return alive;
    } catch (IOException | RuntimeException | Error e) {
      if (alive != null) {
        alive.close();
      }
      ExecutorFiles.remove(starting);
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
   * The folders of the application's other executors on this host, dead ones too. In the order of
   * their names, from the one after this executor's, and the first after the last.
   */
  public List<Path> siblings() {
    List<Path> all =
        FolderSweep.entries(path.getParent()).stream()
            .filter(each -> !each.getFileName().toString().startsWith("."))
            .sorted()
            .toList();
    List<Path> ring = new ArrayList<>();
    all.stream().filter(each -> each.compareTo(path) > 0).forEach(ring::add);
    all.stream().filter(each -> each.compareTo(path) < 0).forEach(ring::add);
    return ring;
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
  FolderLeases leases() {
    return new FolderLeases(path);
  }

  /**
   * Whether a live reader in another process may use a shuffle's memory. The shuffle's indexes must
   * be deleted before. A deleted folder shows no leases, so without one this restores the folder.
   * Until that has succeeded, the answer is true: keeping memory is safe.
   */
  public boolean isLeased(int shuffleId) {
    if (leases().anyLiving(shuffleId)) {
      return true;
    }
    restore();
    return !isIntact() && !lossHandled;
  }

  /**
   * Sets the action that runs when the folder was deleted, before it is created again. It must
   * ensure that no memory which readers may have found in the folder is used again: their leases
   * were deleted.
   */
  public void onLoss(Runnable action) {
    loss = action;
  }

  /**
   * Creates the folder again if another program has deleted it, or a file by which it is known.
   * What is left of it is removed. Logs a failure; the next call tries again. Fast while the folder
   * is there.
   */
  public void restore() {
    if (isIntact() || closed.get()) {
      return;
    }
    try {
      if (change.tryLock(RESTORE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        try {
          restoreLocked();
        } finally {
          change.unlock();
        }
      }
    } catch (InterruptedException e) {
      // The caller's own access to the folder fails, and its memory counts as leased.
      Thread.currentThread().interrupt();
    } catch (IOException e) {
      if (warned.compareAndSet(false, true)) {
        LOG.warn("The folder {} was deleted and cannot be created again: {}", path, e.toString());
      }
    }
  }

  private boolean isIntact() {
    return Files.exists(path.resolve(FolderNames.ALIVE))
        && Files.exists(path.resolve(FolderNames.TOKEN));
  }

  @GuardedBy("change")
  private void restoreLocked() throws IOException {
    if (isIntact() || closed.get()) {
      return;
    }
    loss.run();
    lossHandled = true;
    // Its file was deleted. While it is open, this process cannot lock a file of that name.
    alive.close();
    ExecutorFiles.remove(path);
    Path root = path.getParent().getParent().getParent();
    Files.createDirectories(root);
    if (inMemory && !HostRoot.isMemory(root)) {
      throw new IOException(root + " is not in memory any more");
    }
    alive = make(path, token, adoptable);
    lossHandled = false;
    warned.set(false);
    LOG.warn(
        "The folder {} was deleted by another program and is created again. Earlier blocks of this"
            + " executor are sent over the network. If this host runs systemd, set RemoveIPC=no",
        path);
  }

  /**
   * Keeps what this executor leaves when it dies from sweeps for this time, or up to ten seconds
   * less, also if no other executor of the application runs on the host then. Needs a folder that
   * others may adopt.
   */
  public void keepFor(Duration time) {
    kept = time;
    renewKept();
  }

  /** Sweeps read the time in the file and count from its last change. */
  private void renewKept() {
    if (kept.isZero()) {
      return;
    }
    try {
      Files.writeString(
          path.resolve(FolderNames.ADOPTABLE),
          Long.toString(kept.toMillis()),
          StandardOpenOption.WRITE,
          StandardOpenOption.TRUNCATE_EXISTING);
    } catch (IOException e) {
      LOG.debug("{} is not kept after the death of this executor", path, e);
    }
  }

  /**
   * Removes the folders of dead executors of this application on this host. Runs at most once in
   * ten seconds; other calls do nothing.
   */
  public void sweep() {
    long now = clock.getAsLong();
    long last = lastSweep.get();
    if (now - last >= SWEEP_PERIOD_NANOS && lastSweep.compareAndSet(last, now)) {
      renewKept();
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

  /**
   * Runs as a shutdown hook. This process may still hold leases, which the sweep closes. The
   * application may go on without this executor.
   */
  private void closeAtExit() {
    if (remove()) {
      FolderSweep.atExit(FolderSweep.entries(path.getParent()), false);
      removeParents(path);
    }
  }

  /** Removes the folder. Returns false if it was removed before. */
  private boolean remove() {
    if (!closed.compareAndSet(false, true)) {
      return false;
    }
    // A thread that restores the folder ends soon, and no other one starts any more.
    change.lock();
    try {
      removeLocked();
    } catch (IOException e) {
      LOG.warn("The folder {} was not removed: {}", path, e.toString());
    } finally {
      change.unlock();
    }
    return true;
  }

  @GuardedBy("change")
  private void removeLocked() throws IOException {
    try (LockedFile lock = alive) {
      LOG.debug("Removing {}, locked by {}", path, lock);
      ExecutorFiles.remove(path);
    }
  }

  static void removeParents(Path executor) {
    FolderSweep.removeIfEmpty(executor.getParent());
    FolderSweep.removeIfEmpty(executor.getParent().getParent());
  }
}
