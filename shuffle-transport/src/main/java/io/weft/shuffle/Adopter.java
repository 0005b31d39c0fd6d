package io.weft.shuffle;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_ADOPTED;
import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_ADOPTED;

import io.weft.memory.Bytes;
import io.weft.shuffle.AdoptionAgreement.AdopterRemovedException;
import io.weft.shuffle.AdoptionAgreement.Step;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.BlockCatalog;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.DeadFolder;
import io.weft.shuffle.store.ExecutorFolder;
import io.weft.shuffle.store.FolderAdoption;
import io.weft.shuffle.store.FolderAdoption.Adopted;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adopts the map outputs of executors of the same application that die on this host.
 *
 * <p>The executors of a host watch each other in a ring, in the order of their folders' names. Each
 * one polls the lock of the next living one and adopts the folders of dead ones before it. So a
 * death is noticed fast at little cost. A watcher may be stopped, busy or dying itself, so once a
 * second each executor tries the locks of all others.
 *
 * <p>Owns the thread "weft-adopter", which ends at close.
 */
final class Adopter implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Adopter.class);

  /** Spark runs map tasks again 200 ms after a fetch failure. Adoption should be done by then. */
  private static final long PERIOD_MILLIS = 25;

  /** While the watched executor has no outputs. */
  private static final long IDLE_PERIOD_MILLIS = 250;

  private static final long LISTING_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long ROUND_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long CLOSE_TIMEOUT_SECONDS = 20;

  /** Why outputs were left out, in a log line. */
  private static final int REASONS_SHOWN = 3;

  private final ExecutorFolder folder;
  private final BlockCatalog catalog;
  private final FolderAdoption adoption;
  private final AdoptionAgreement driver;
  private final ExchangeCounters counters;
  private final ScheduledThreadPoolExecutor executor =
      new ScheduledThreadPoolExecutor(1, Adopter::thread);

  /** The other executors' folders, from the one after this executor's; only the thread uses it. */
  private List<Path> siblings = List.of();

  /** Folders of dead executors that this one has tried to adopt. */
  private final Set<Path> handled = new HashSet<>();

  /** Folders whose failure was logged. */
  private final Set<Path> failed = new HashSet<>();

  /** Whether the last poll failed, so that only the first failure is logged. */
  private boolean failing;

  /** Whether the driver has removed this executor. */
  private boolean removed;

  /** Whether the next executor of the ring has map outputs, as far as the last listing knows. */
  private boolean outputsWatched;

  private long listed = System.nanoTime() - LISTING_NANOS;
  private long lastRound = System.nanoTime() - ROUND_NANOS;

  /** Starts the thread. */
  Adopter(
      ExecutorFolder folder,
      BlockCatalog catalog,
      FolderAdoption adoption,
      AdoptionAgreement driver,
      ExchangeCounters counters) {
    this.folder = folder;
    this.catalog = catalog;
    this.adoption = adoption;
    this.driver = driver;
    this.counters = counters;
    executor.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
    schedule(PERIOD_MILLIS);
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-adopter");
    thread.setDaemon(true);
    return thread;
  }

  private void schedule(long millis) {
    ScheduledFuture<?> unused = executor.schedule(this::poll, millis, TimeUnit.MILLISECONDS);
  }

  /** Catches every exception, because no poll would follow one that throws. */
  private void poll() {
    try {
      watch();
      failing = false;
    } catch (RuntimeException | Error e) {
      if (!failing) {
        LOG.warn("Watching the executors on this host failed; the next poll tries again", e);
      }
      failing = true;
    }
    if (!removed) {
      schedule(outputsWatched ? PERIOD_MILLIS : IDLE_PERIOD_MILLIS);
    }
  }

  /** Adopts dead executors up to the next living one, and in each round all dead ones. */
  private void watch() {
    long now = System.nanoTime();
    boolean lists = now - listed >= LISTING_NANOS;
    boolean round = now - lastRound >= ROUND_NANOS;
    if (lists) {
      siblings = folder.siblings();
      handled.retainAll(siblings);
      failed.retainAll(siblings);
      outputsWatched = false;
      listed = now;
    }
    if (round) {
      lastRound = now;
    }
    boolean first = true;
    for (Path sibling : siblings) {
      if (removed || executor.isShutdown()) {
        return;
      }
      if (adoptIfDead(sibling)) {
        continue;
      }
      if (first && lists) {
        outputsWatched = DeadFolder.hasOutputs(sibling);
      }
      first = false;
      if (!round) {
        return;
      }
    }
  }

  /** Adopts and settles the folder of an executor. Returns false if it may be alive. */
  private boolean adoptIfDead(Path sibling) {
    try {
      if (DeadFolder.isSettled(sibling)) {
        return true;
      }
      Optional<DeadFolder> dead = DeadFolder.seize(sibling);
      if (dead.isEmpty()) {
        return false;
      }
      try (DeadFolder seized = dead.get()) {
        adoptAndSettle(seized);
      }
      DeadFolder.remove(sibling);
    } catch (NoSuchFileException e) {
      LOG.debug("{} was removed", sibling);
    } catch (AdopterRemovedException e) {
      // Another executor may adopt the folder.
      removed = true;
      LOG.warn("This executor adopts no map outputs any more: {}", e.getMessage());
    } catch (InterruptedException e) {
      // This executor ends. Another one may adopt the folder.
      Thread.currentThread().interrupt();
    } catch (IOException | RuntimeException e) {
      if (failed.add(sibling)) {
        LOG.warn(
            "The folder {} cannot be adopted or settled; the next polls try again", sibling, e);
      }
    }
    return true;
  }

  /** Tries once to adopt a folder. Settles it also after a failure. */
  private void adoptAndSettle(DeadFolder dead) throws IOException, InterruptedException {
    if (handled.add(dead.path())) {
      try {
        adopt(dead);
      } catch (AdopterRemovedException e) {
        throw e;
      } catch (IOException | RuntimeException e) {
        LOG.warn(
            "The map outputs of executor {}, which died, are not adopted, so Spark computes them"
                + " again where they are needed",
            dead.executorId(),
            e);
      }
    }
    dead.settle();
  }

  private void adopt(DeadFolder dead) throws IOException, InterruptedException {
    long start = System.nanoTime();
    if (!dead.isIntact()) {
      throw new IOException("another program has deleted files of " + dead.path());
    }
    Collection<BlockKey> left = dead.outputs();
    if (left.isEmpty()) {
      return;
    }
    Set<BlockKey> needed = ask(Step.SELECT, dead, left);
    Adopted adopted = new Adopted();
    try {
      adoption.adopt(dead, needed, adopted);
    } catch (RuntimeException | Error e) {
      drop(adopted, Set.of());
      throw e;
    }
    Optional<Set<BlockKey>> here = Optional.of(Set.of());
    try {
      if (!adopted.all().isEmpty()) {
        here = commit(dead, adopted.all());
      }
    } catch (AdopterRemovedException e) {
      drop(adopted, Set.of());
      throw e;
    }
    if (here.isPresent()) {
      drop(adopted, here.get());
      report(dead, left.size(), adopted, here.get(), System.nanoTime() - start);
    }
  }

  /**
   * Sends readers here. Returns the outputs that they find here; empty if the driver does not tell.
   * Then all outputs stay, because a reader that is sent here and finds none would make Spark
   * forget all outputs of this executor.
   *
   * @throws AdopterRemovedException if the driver sends no readers here
   */
  private Optional<Set<BlockKey>> commit(DeadFolder dead, Collection<BlockKey> outputs)
      throws AdopterRemovedException, InterruptedException {
    try {
      return Optional.of(ask(Step.MOVE, dead, outputs));
    } catch (AdopterRemovedException e) {
      throw e;
    } catch (IOException | RuntimeException e) {
      LOG.warn(
          "The driver did not confirm the adoption of executor {}: {}",
          dead.executorId(),
          e.toString());
    }
    try {
      return Optional.of(ask(Step.KEEP, dead, outputs));
    } catch (AdopterRemovedException e) {
      throw e;
    } catch (IOException | RuntimeException e) {
      LOG.warn(
          "{} map outputs of executor {}, which died, stay here until their shuffles end, because"
              + " the driver may have sent readers here",
          outputs.size(),
          dead.executorId(),
          e);
      return Optional.empty();
    }
  }

  private Set<BlockKey> ask(Step step, DeadFolder dead, Collection<BlockKey> outputs)
      throws IOException, InterruptedException {
    return driver.agree(step, dead.executorId(), dead.incarnation(), outputs);
  }

  private void drop(Adopted adopted, Set<BlockKey> needed) {
    Set<BlockKey> unneeded = new HashSet<>(adopted.fresh().keySet());
    unneeded.removeAll(needed);
    catalog.removeMapOutputs(unneeded);
  }

  private void report(DeadFolder dead, int left, Adopted adopted, Set<BlockKey> here, long nanos) {
    long bytes = here.stream().mapToLong(key -> adopted.fresh().getOrDefault(key, 0L)).sum();
    counters.add(OUTPUTS_ADOPTED, here.size());
    counters.add(BYTES_ADOPTED, bytes);
    LOG.info(
        "Adopted {} of {} map outputs of executor {}, which died, with {} of memory in {} ms",
        here.size(),
        left,
        dead.executorId(),
        Bytes.text(bytes),
        TimeUnit.NANOSECONDS.toMillis(nanos));
    if (!adopted.refusals().isEmpty()) {
      LOG.warn(
          "{} map outputs of executor {} cannot be adopted, so Spark computes them again where they"
              + " are needed: {}",
          adopted.refusals().size(),
          dead.executorId(),
          adopted.refusals().stream().limit(REASONS_SHOWN).toList());
    }
  }

  /** Stops watching, and interrupts an adoption that waits for the driver. */
  @Override
  public void close() {
    executor.shutdownNow();
    try {
      if (!executor.awaitTermination(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("An adoption still runs after {} s", CLOSE_TIMEOUT_SECONDS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
