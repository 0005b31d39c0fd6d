package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.arithmetic.Reduction;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Loads code and native libraries before a gang starts. Loading takes locks of the runtime or the
 * driver. Lazy loading can wait for a device on which a peer already spins for this rank: a
 * deadlock. So each rank loads in the first round in which communicators are created, and no rank
 * gets past that round before all have loaded.
 *
 * <p>Thread-safe. Each item is loaded once.
 */
public final class Preloader {
  private final Map<String, Loader> loaders = new LinkedHashMap<>();
  private final Map<String, Boolean> loaded = new ConcurrentHashMap<>();

  /** A step that loads one item. */
  @FunctionalInterface
  public interface Loader {
    void load() throws Exception;
  }

  /** A preparation that loads the reductions of every type, which the host collectives need. */
  public static Preloader ofHost() {
    return new Preloader().load("reductions", Preloader::loadReductions);
  }

  private static void loadReductions() {
    for (DataType type : DataType.values()) {
      for (ReduceOp op : ReduceOp.values()) {
        Reduction unused = Reduction.of(type, op);
      }
    }
  }

  /**
   * Adds an item to load, after those added before.
   *
   * @param what its name, for messages; a second loader with the same name is ignored
   */
  public synchronized Preloader load(String what, Loader loader) {
    loaders.putIfAbsent(what, loader);
    return this;
  }

  /**
   * Loads the items that are not loaded yet.
   *
   * @param rank for messages
   * @throws CollectiveException naming the rank and the item that it cannot load
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
