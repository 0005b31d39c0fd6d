package io.weft.spark.shuffle;

import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The routes of registered shuffles whose stages have not started, for the UI. Used on the driver.
 * Keeps the last {@link #MAX_KEPT}. Thread-safe.
 */
public final class ShuffleRoutes {
  /** Maximum number of routes. */
  static final int MAX_KEPT = 10_000;

  private final Map<Integer, Supplier<Optional<RouteTaken>>> routes =
      Collections.synchronizedMap(
          new LinkedHashMap<>() {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(
                Map.Entry<Integer, Supplier<Optional<RouteTaken>>> eldest) {
              return size() > MAX_KEPT;
            }
          });

  /**
   * The route of a shuffle.
   *
   * @param name in one or two words
   * @param why the reason, as a clause
   * @param partitions reduce partitions
   */
  public record RouteTaken(String name, String why, int partitions) {
    /** The route of shuffles that Weft does not carry. */
    public static final String SORT = "Spark's sort shuffle";
  }

  void add(int shuffleId, RouteTaken route) {
    routes.put(shuffleId, () -> Optional.of(route));
  }

  /**
   * Adds a dependency that names its route. It is asked when the route is taken: while Spark
   * registers the shuffle, the dependency's constructor still runs. Does not keep it alive.
   */
  void add(int shuffleId, ExchangeDependency dependency) {
    WeakReference<ExchangeDependency> known = new WeakReference<>(dependency);
    routes.put(shuffleId, () -> Optional.ofNullable(known.get()).map(ExchangeDependency::route));
  }

  /** Removes and returns the route of a shuffle; empty if it is unknown or was taken. */
  public Optional<RouteTaken> take(int shuffleId) {
    return Optional.ofNullable(routes.remove(shuffleId)).flatMap(Supplier::get);
  }
}
