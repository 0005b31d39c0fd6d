package io.weft.collectives.local;

import io.weft.collectives.Rendezvous;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** The state that the communicators of one unique id share. Thread-safe. */
final class Gang {
  private static final ConcurrentMap<UniqueId, Gang> GANGS = new ConcurrentHashMap<>();

  private final UniqueId id;
  private final int nranks;
  private final Mailbox[][] mailboxes;
  private final Map<Long, Rendezvous<Operation, Void>> collectives = new HashMap<>();
  private int members;
  private CollectiveException failure;

  private Gang(UniqueId id, int nranks) {
    this.id = id;
    this.nranks = nranks;
    this.mailboxes = new Mailbox[nranks][nranks];
    for (int from = 0; from < nranks; from++) {
      for (int to = 0; to < nranks; to++) {
        mailboxes[from][to] = new Mailbox(from, to);
      }
    }
  }

  /** Adds a member; each member has to {@link #leave}. */
  static Gang join(UniqueId id, int nranks) {
    return GANGS.compute(
        id,
        (key, present) -> {
          Gang gang = present == null ? new Gang(id, nranks) : present;
          synchronized (gang) {
            gang.members++;
          }
          return gang;
        });
  }

  /** Removes a member; the last one removes the gang. */
  void leave() {
    GANGS.computeIfPresent(
        id,
        (key, gang) -> {
          synchronized (gang) {
            gang.members--;
            return gang.members == 0 ? null : gang;
          }
        });
  }

  Mailbox mailbox(int from, int to) {
    return mailboxes[from][to];
  }

  /**
   * The rendezvous for the collective with this number. Throws the failure at once when the gang is
   * broken.
   */
  synchronized Rendezvous<Operation, Void> collective(long number) {
    if (failure != null) {
      throw failure;
    }
    collectives.keySet().removeIf(old -> old < number - 1);
    return collectives.computeIfAbsent(
        number,
        key ->
            new Rendezvous<>(
                "collective #" + number + " of communicator " + id,
                nranks,
                operations -> {
                  ReferenceCollectives.compute(operations);
                  return null;
                }));
  }

  /** Fails all waiting and all future operations. */
  void fail(CollectiveException cause) {
    failCollectives(cause);
    for (int rank = 0; rank < nranks; rank++) {
      failMailboxes(rank, cause);
    }
  }

  /** Fails the operations that need this rank: all collectives, and sends and receives with it. */
  void failWith(int rank, CollectiveException cause) {
    failCollectives(cause);
    failMailboxes(rank, cause);
  }

  private void failCollectives(CollectiveException cause) {
    List<Rendezvous<Operation, Void>> waiting;
    synchronized (this) {
      if (failure != null) {
        return;
      }
      failure = cause;
      waiting = List.copyOf(collectives.values());
    }
    waiting.forEach(rendezvous -> rendezvous.fail(cause));
  }

  private void failMailboxes(int rank, CollectiveException cause) {
    for (int peer = 0; peer < nranks; peer++) {
      mailboxes[rank][peer].fail(cause);
      mailboxes[peer][rank].fail(cause);
    }
  }
}
