package io.weft.collectives.clique;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The last incarnations of processes that have ended, at most {@link #MAX}, each with a cause. A
 * driver forgets the addresses of earlier ones too, so that no new clique names them. Not
 * thread-safe.
 *
 * @param <C> the type of the cause
 */
public final class EndedIncarnations<C> {
  /** The number of incarnations that are kept. */
  public static final int MAX = 1000;

  private final Map<Incarnation, C> causes = new LinkedHashMap<>();

  private record Incarnation(String process, String id) {}

  /** Adds an incarnation, and forgets the earliest one if there are too many. */
  public void add(String process, String incarnation, C cause) {
    causes.put(new Incarnation(process, incarnation), cause);
    if (causes.size() > MAX) {
      causes.remove(causes.keySet().iterator().next());
    }
  }

  /** The cause of the end; empty if the incarnation is not known to have ended. */
  public Optional<C> cause(String process, String incarnation) {
    return Optional.ofNullable(causes.get(new Incarnation(process, incarnation)));
  }
}
