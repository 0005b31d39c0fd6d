package io.weft.spark.shuffle;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The routes of registered shuffles whose stages have not started, for the UI. Used on the driver.
 * Keeps the last {@link #MAX_KEPT}. Thread-safe.
 */
public final class ShuffleRoutes {
  /** Maximum number of routes. */
  static final int MAX_KEPT = 10_000;

  private final Map<Integer, RouteTaken> routes =
      Collections.synchronizedMap(
          new LinkedHashMap<>() {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, RouteTaken> eldest) {
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
    routes.put(shuffleId, route);
  }

  /** Removes and returns the route of a shuffle; empty if it is unknown or was taken. */
  public Optional<RouteTaken> take(int shuffleId) {
    return Optional.ofNullable(routes.remove(shuffleId));
  }
}
