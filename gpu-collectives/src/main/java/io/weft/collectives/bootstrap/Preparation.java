package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.arithmetic.Reduction;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Loads code and native libraries before a gang starts. Loading takes locks of the runtime or the
 * driver; done lazily it can wait for a device on which a peer already spins for this rank, and
 * neither goes on. So each rank loads first, and {@link #meet} lets nobody on before all have.
 *
 * <p>Thread-safe; what was loaded once is not loaded again.
 */
public final class Preparation {
  private final Map<String, Loader> loaders = new LinkedHashMap<>();
  private final Map<String, Boolean> loaded = new ConcurrentHashMap<>();

  /** Something to load. */
  @FunctionalInterface
  public interface Loader {
    void load() throws Exception;
  }

  /** With the reductions of every type, which the host's collectives need. */
  public static Preparation ofHost() {
    return new Preparation().load("reductions", Preparation::loadReductions);
  }

  private static void loadReductions() {
    for (DataType type : DataType.values()) {
      for (ReduceOp op : ReduceOp.values()) {
        Reduction unused = Reduction.of(type, op);
      }
    }
  }

  /**
   * Adds something to load, behind what was added before.
   *
   * @param what its name, for messages; a second loader of a name is ignored
   */
  public synchronized Preparation load(String what, Loader loader) {
    loaders.putIfAbsent(what, loader);
    return this;
  }

  /**
   * Loads what is not loaded yet and returns once all ranks have.
   *
   * @throws CollectiveException on all ranks when loading failed on one; names it and what it was
   */
  public void meet(Bootstrap meeting, Deadline deadline) {
    new BootstrapRounds(meeting, deadline).barrier("prepared", () -> load(meeting.rank()));
  }

  /**
   * Loads what is not loaded yet. For a factory that makes communicators in rounds: the first of
   * them is no later than this, so that nobody is past it before all have loaded.
   *
   * @param rank for messages
   * @throws CollectiveException naming the rank and what it cannot load
   */
  public synchronized void load(int rank) {
    for (Map.Entry<String, Loader> entry : loaders.entrySet()) {
      if (!loaded.containsKey(entry.getKey())) {
        load(rank, entry.getKey(), entry.getValue());
        loaded.put(entry.getKey(), true);
      }
    }
  }

  private static void load(int rank, String what, Loader loader) {
    try {
      loader.load();
    } catch (Exception | LinkageError e) {
      throw new CollectiveException(
          Kind.IO, List.of(rank), "rank " + rank + " cannot load " + what + ": " + e, e);
    }
  }
}
