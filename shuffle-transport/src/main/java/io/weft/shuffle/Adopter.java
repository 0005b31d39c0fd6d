package io.weft.shuffle;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_ADOPTED_IN_PLACE;
import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_ADOPTED_IN_PLACE;

import io.weft.memory.Bytes;
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
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adopts the map outputs of executors of the same application that die on this host.
 *
 * <p>The executors of a host watch each other in a ring, in the order of their folders' names. Each
 * one polls the lock of the next living one and adopts the folders of dead ones before it. So a
 * death is noticed fast, and polling costs the same for any number of executors.
 *
 * <p>Owns the thread "weft-adoption", which ends at close.
 */
final class Adopter implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Adopter.class);

  /** Spark runs map tasks again 200 ms after a fetch failure. Adoption should be done by then. */
  private static final long PERIOD_MILLIS = 25;

  private static final long LISTING_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
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

  /** Whether the last poll failed, so that only the first failure is logged. */
  private boolean failing;

  private long listed = System.nanoTime() - LISTING_NANOS;

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
    ScheduledFuture<?> unused =
        executor.scheduleWithFixedDelay(
            this::poll, PERIOD_MILLIS, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-adoption");
    thread.setDaemon(true);
    return thread;
  }

  /** Catches every exception, because the pool would run no more work that throws. */
  private void poll() {
    try {
      if (System.nanoTime() - listed >= LISTING_NANOS) {
        siblings = folder.siblings();
        handled.retainAll(siblings);
        listed = System.nanoTime();
      }
      watch();
      failing = false;
    } catch (IOException | RuntimeException | Error e) {
      if (!failing) {
        LOG.warn("Watching the executors on this host failed; the next poll tries again", e);
      }
      failing = true;
    }
  }

  /** Adopts dead executors up to the next living one. */
  private void watch() throws IOException {
    for (Path sibling : siblings) {
      try {
        if (handled.contains(sibling) || DeadFolder.isSettled(sibling)) {
          continue;
        }
        Optional<DeadFolder> dead = DeadFolder.seize(sibling);
        if (dead.isEmpty()) {
          return;
        }
        handled.add(sibling);
        try (DeadFolder seized = dead.get()) {
          adopt(seized);
        }
        DeadFolder.remove(sibling);
      } catch (NoSuchFileException e) {
        LOG.debug("{} was removed", sibling);
      }
    }
  }

  /** Adopts a folder and settles it, also after a failure. */
  private void adopt(DeadFolder dead) throws IOException {
    boolean ending = false;
    try {
      takeOver(dead);
    } catch (InterruptedException e) {
      // This executor ends. Another one may adopt the folder.
      ending = true;
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      LOG.warn("The map outputs of executor {}, which died, are lost", dead.executorId(), e);
    } finally {
      if (!ending) {
        dead.settle();
      }
    }
  }

  private void takeOver(DeadFolder dead) throws InterruptedException {
    long start = System.nanoTime();
    Adopted adopted = adoption.adopt(dead);
    Set<BlockKey> needed = Set.of();
    try {
      if (!adopted.all().isEmpty()) {
        needed = driver.agree(dead.executorId(), dead.incarnation(), adopted.all());
      }
      report(dead, adopted, needed, System.nanoTime() - start);
    } catch (IOException | RuntimeException e) {
      LOG.warn(
          "The {} map outputs of executor {}, which died, are not adopted, so Spark computes them"
              + " again where they are needed: {}",
          adopted.all().size(),
          dead.executorId(),
          e.toString());
    }
    drop(adopted, needed);
  }

  private void drop(Adopted adopted, Set<BlockKey> needed) {
    Set<BlockKey> unneeded = new HashSet<>(adopted.fresh().keySet());
    unneeded.removeAll(needed);
    unneeded.forEach(catalog::removeMapOutput);
  }

  private void report(DeadFolder dead, Adopted adopted, Set<BlockKey> needed, long nanos) {
    long bytes = needed.stream().mapToLong(key -> adopted.fresh().getOrDefault(key, 0L)).sum();
    counters.add(OUTPUTS_ADOPTED_IN_PLACE, needed.size());
    counters.add(BYTES_ADOPTED_IN_PLACE, bytes);
    LOG.info(
        "Adopted {} of {} map outputs of executor {}, which died, with {} of memory in {} ms",
        needed.size(),
        adopted.all().size() + adopted.refusals().size(),
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
