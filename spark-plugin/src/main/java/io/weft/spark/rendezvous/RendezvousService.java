package io.weft.spark.rendezvous;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.UniqueId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * The rendezvous of all groups of one kind, on the driver. The first member of a group opens a
 * gathering, and each other member joins it. A member that comes again with a new ticket opens the
 * next gathering of its group. Never blocks, because Spark's message and listener threads call it.
 * Thread-safe.
 *
 * @param <K> the kind of group
 */
public final class RendezvousService<K extends RendezvousKey> {
  private final ExecutorLosses losses;

  /** The gathering of each group that members join. */
  private final Map<K, Gathering<K>> latest = new HashMap<>();

  private final Map<String, Gathering<K>> byTicket = new HashMap<>();

  /**
   * Creates a service without gatherings.
   *
   * @param losses a gathering with a member on one of these executors fails
   */
  public RendezvousService(ExecutorLosses losses) {
    this.losses = losses;
  }

  /**
   * Answers one member at once.
   *
   * @throws IllegalArgumentException if the rank or the number of members does not fit the group
   */
  public synchronized RendezvousAnswer answer(RendezvousCall<K> call) {
    if (call.round().equals(RendezvousCall.LEAVE)) {
      withdraw(call);
      return RendezvousAnswer.withoutRendezvous(null, List.of());
    }
    Gathering<K> gathering = byTicket.get(call.ticket());
    if (gathering == null) {
      gathering = join(call);
    }
    for (String executor : call.key().executors()) {
      losses.reason(executor).ifPresent(gathering::fail);
    }
    return gathering.answer(call);
  }

  private Gathering<K> join(RendezvousCall<K> call) {
    Gathering<K> gathering = latest.get(call.key());
    if (gathering == null || gathering.hasTicket(call.rank())) {
      gathering = new Gathering<>(call.key(), call.nranks());
    }
    gathering.join(call);
    latest.put(call.key(), gathering);
    byTicket.put(call.ticket(), gathering);
    return gathering;
  }

  private void withdraw(RendezvousCall<K> call) {
    Gathering<K> gathering = byTicket.remove(call.ticket());
    if (gathering != null) {
      latest.remove(call.key(), gathering);
      gathering.fail(call.name() + " has left the rendezvous");
    }
  }

  /** Opens the gathering of a group before its first member comes, unless there is one. */
  synchronized void expect(K key, int nranks) {
    latest.computeIfAbsent(key, absent -> new Gathering<>(absent, nranks));
  }

  /** Names a member that has not come yet. Does nothing without a gathering of the group. */
  synchronized void name(K key, int rank, String name) {
    Gathering<K> gathering = latest.get(key);
    if (gathering != null) {
      gathering.name(rank, name);
    }
  }

  /** Fails the gathering of a group because of one member, if there is a gathering. */
  synchronized void fail(K key, int rank, String reason) {
    Gathering<K> gathering = latest.get(key);
    if (gathering != null) {
      gathering.fail(rank, reason);
    }
  }

  /** Forgets the gatherings of the groups that have ended. */
  synchronized void end(Predicate<K> ended) {
    latest.keySet().removeIf(ended);
    byTicket.values().removeIf(gathering -> ended.test(gathering.key));
  }

  /** Fails the gatherings with a member on a lost executor. */
  synchronized void executorLost(String executorId, String reason) {
    Set<Gathering<K>> affected = new HashSet<>(byTicket.values());
    affected.removeIf(gathering -> !gathering.key.executors().contains(executorId));
    for (Gathering<K> gathering : affected) {
      gathering.fail(reason);
      latest.remove(gathering.key, gathering);
      // The survivors withdraw with their tickets; members on the lost executor never do.
      byTicket.keySet().removeAll(gathering.ticketsOf(executorId));
    }
  }

  /** The number of groups that members can join. */
  synchronized int open() {
    return latest.size();
  }

  /** The number of members that have joined and not left, for tests. */
  public synchronized int present() {
    return byTicket.size();
  }

  /** One gathering of a group: the messages of its rounds, and its failure. Not thread-safe. */
  private static final class Gathering<K extends RendezvousKey> {
    private final K key;
    private final String id = UniqueId.create().encode();
    private final String[] tickets;
    private final String[] names;
    private final Map<String, byte[][]> rounds = new LinkedHashMap<>();
    private List<Integer> culprits = List.of();
    private String failure;

    Gathering(K key, int nranks) {
      this.key = key;
      this.tickets = new String[nranks];
      this.names = new String[nranks];
      Arrays.fill(names, "");
    }

    boolean hasTicket(int rank) {
      return rank >= 0 && rank < tickets.length && tickets[rank] != null;
    }

    void join(RendezvousCall<K> call) {
      check(call);
      tickets[call.rank()] = call.ticket();
    }

    private void check(RendezvousCall<K> call) {
      if (call.nranks() != names.length || call.rank() < 0 || call.rank() >= names.length) {
        throw new IllegalArgumentException(
            "%s has %d members, but one came as %d of %d"
                .formatted(key, names.length, call.rank(), call.nranks()));
      }
    }

    /** The tickets of the members on an executor. */
    List<String> ticketsOf(String executorId) {
      List<String> found = new ArrayList<>();
      List<String> executors = key.executors();
      for (int rank = 0; rank < executors.size(); rank++) {
        if (hasTicket(rank) && executors.get(rank).equals(executorId)) {
          found.add(tickets[rank]);
        }
      }
      return found;
    }

    /** Takes the member's message and returns the state of its round. */
    RendezvousAnswer answer(RendezvousCall<K> call) {
      check(call);
      names[call.rank()] = call.name();
      if (call.failure() != null) {
        fail(call.rank(), call.failure());
      }
      byte[][] messages = rounds.computeIfAbsent(call.round(), name -> new byte[names.length][]);
      if (call.message() != null) {
        messages[call.rank()] = call.message();
      }
      List<Integer> missing = missing(messages);
      if (missing.isEmpty()) {
        forgetBefore(call.round());
      }
      return new RendezvousAnswer(
          id,
          List.of(names.clone()),
          missing.isEmpty() ? new ArrayList<>(Arrays.asList(messages)) : null,
          missing,
          failure,
          culprits);
    }

    private static List<Integer> missing(byte[][] messages) {
      List<Integer> missing = new ArrayList<>();
      for (int rank = 0; rank < messages.length; rank++) {
        if (messages[rank] == null) {
          missing.add(rank);
        }
      }
      return missing;
    }

    /** A member that has come to a round has fetched all rounds of its sequence before it. */
    private void forgetBefore(String round) {
      String sequence = sequenceOf(round);
      var known = rounds.keySet().iterator();
      while (known.hasNext()) {
        String before = known.next();
        if (before.equals(round)) {
          return;
        }
        if (sequenceOf(before).equals(sequence)) {
          known.remove();
        }
      }
    }

    /** The part up to the slash: the threads of a member may go through several sequences. */
    private static String sequenceOf(String round) {
      return round.substring(0, round.indexOf('/') + 1);
    }

    void name(int rank, String name) {
      if (rank < names.length && names[rank].isEmpty()) {
        names[rank] = name;
      }
    }

    /** Fails the gathering because of a member; the first reason counts. */
    void fail(int rank, String reason) {
      if (failure == null && rank < names.length) {
        String name = names[rank].isEmpty() ? "" : " (" + names[rank] + ")";
        failure =
            "%s%s of %s %s".formatted(CollectiveException.name(List.of(rank)), name, key, reason);
        culprits = List.of(rank);
      }
    }

    /** Fails the gathering without naming a rank; the first reason counts. */
    void fail(String reason) {
      failure = failure == null ? reason : failure;
    }
  }

  /** Sends calls to the rendezvous on the driver. Implementations are thread-safe. */
  @FunctionalInterface
  public interface RendezvousDriver<K extends RendezvousKey> {
    /**
     * Sends a call to the driver, which answers at once.
     *
     * @throws InterruptedException if the thread is interrupted
     * @throws Exception if no answer comes; a retry may succeed
     */
    RendezvousAnswer ask(RendezvousCall<K> call) throws Exception;
  }
}
