package io.weft.collectives.local;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Operation;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Receive;
import io.weft.collectives.Recording;
import io.weft.collectives.Send;
import io.weft.collectives.Topology;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.ThreadRendezvous;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.Deadline;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.memory.Memory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/** One rank of a {@link Gang}. */
public final class LocalCommunicator extends OrderedCommunicator {
  /** A send or receive that was posted and may not have matched yet. */
  private record Posted(int peer, HostEvent event) {}

  private final Gang gang;
  private long collectives;
  private long waitNanos;
  private boolean closed;

  private LocalCommunicator(Bootstrapped self, Gang gang, CommunicatorOptions options) {
    super(self, options);
    this.gang = gang;
  }

  /**
   * Creates a communicator, as a {@link io.weft.collectives.CommunicatorFactory}. All ranks must be
   * in this process.
   */
  public static LocalCommunicator create(Bootstrap bootstrap, CommunicatorOptions options) {
    Gang gang = Gang.join(bootstrap.id(), bootstrap.nranks());
    try {
      bootstrap.exchange("local", new byte[0], Deadline.after(options.timeout()));
    } catch (RuntimeException e) {
      gang.leave();
      throw e;
    }
    return new LocalCommunicator(Bootstrapped.of(bootstrap), gang, options);
  }

  @Override
  public Recording record(MovedBuffers moved, Consumer<Communicator> body) {
    return StepRecording.record(this, moved, body);
  }

  @Override
  public Topology topology() {
    return new Topology(List.of(IntStream.range(0, nranks()).boxed().toList()));
  }

  @Override
  protected Algorithm execute(Operation operation, Deadline deadline) {
    return executeGroup(List.of(operation), deadline);
  }

  @Override
  protected Algorithm executeGroup(List<Operation> operations, Deadline deadline) {
    waitNanos = 0;
    List<Posted> posted = new ArrayList<>();
    for (Operation operation : operations) {
      if (operation instanceof Send send) {
        posted.add(new Posted(send.peer(), gang.mailbox(rank(), send.peer()).send(send.buffer())));
      } else if (operation instanceof Receive receive) {
        posted.add(
            new Posted(
                receive.peer(), gang.mailbox(receive.peer(), rank()).receive(receive.buffer())));
      }
    }
    for (Operation operation : operations) {
      if (operation.kind().isCollective()) {
        waitedFor(() -> gang.collective(collectives++).arrive(rank(), operation, deadline));
      }
    }
    posted.forEach(post -> waitedFor(() -> await(post, deadline)));
    return Algorithm.REFERENCE;
  }

  private void waitedFor(Runnable wait) {
    long start = System.nanoTime();
    wait.run();
    waitNanos += System.nanoTime() - start;
  }

  private void await(Posted posted, Deadline deadline) {
    try {
      posted.event().await(deadline);
    } catch (EventTimeoutException e) {
      throw new CollectiveException(
          CollectiveException.Kind.TIMEOUT,
          List.of(posted.peer()),
          "rank "
              + posted.peer()
              + " did not reach the "
              + posted.event().what()
              + " within "
              + deadline,
          e);
    } catch (EventFailedException e) {
      throw e.getCause() instanceof CollectiveException cause ? cause : e;
    }
  }

  @Override
  protected long lastWaitNanos() {
    return waitNanos;
  }

  @Override
  protected void announce(CollectiveException cause) {
    gang.fail(cause);
  }

  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    CollectiveException cause =
        new CollectiveException(
            CollectiveException.Kind.CLOSED,
            List.of(rank()),
            "rank " + rank() + " closed communicator " + id());
    adopt(cause);
    gang.failWith(rank(), cause);
    gang.leave();
  }

  /** The state that the communicators of one unique id share. Thread-safe. */
  static final class Gang {
    private static final ConcurrentMap<UniqueId, Gang> GANGS = new ConcurrentHashMap<>();

    private final UniqueId id;
    private final int nranks;
    private final Mailbox[][] mailboxes;
    private final Map<Long, ThreadRendezvous<Operation, Void>> collectives = new HashMap<>();
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
     * The rendezvous for the collective with this number. Throws the failure at once when the gang
     * is broken.
     */
    synchronized ThreadRendezvous<Operation, Void> collective(long number) {
      if (failure != null) {
        throw failure;
      }
      collectives.keySet().removeIf(old -> old < number - 1);
      return collectives.computeIfAbsent(
          number,
          key ->
              new ThreadRendezvous<>(
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

    /**
     * Fails the operations that need this rank: all collectives, and sends and receives with it.
     */
    void failWith(int rank, CollectiveException cause) {
      failCollectives(cause);
      failMailboxes(rank, cause);
    }

    private void failCollectives(CollectiveException cause) {
      List<ThreadRendezvous<Operation, Void>> waiting;
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

  /**
   * Sends and receives from one rank to another that have no match yet. The second of a pair copies
   * the elements. Thread-safe.
   */
  static final class Mailbox {
    private record Post(TypedBuffer buffer, HostEvent event) {}

    private final int from;
    private final int to;
    private final Queue<Post> sends = new ArrayDeque<>();
    private final Queue<Post> receives = new ArrayDeque<>();
    private CollectiveException failure;

    Mailbox(int from, int to) {
      this.from = from;
      this.to = to;
    }

    /** Posts a send; the event ends once the peer has the elements. */
    HostEvent send(TypedBuffer buffer) {
      Post post = new Post(buffer, new HostEvent("send from rank " + from + " to rank " + to));
      match(post, sends, receives);
      return post.event();
    }

    /** Posts a receive; the event ends once the elements have arrived. */
    HostEvent receive(TypedBuffer buffer) {
      Post post = new Post(buffer, new HostEvent("receive by rank " + to + " from rank " + from));
      match(post, receives, sends);
      return post.event();
    }

    /** Fails waiting and future sends and receives. */
    void fail(CollectiveException cause) {
      List<Post> waiting;
      synchronized (this) {
        failure = failure == null ? cause : failure;
        waiting = new ArrayList<>(sends);
        waiting.addAll(receives);
        sends.clear();
        receives.clear();
      }
      waiting.forEach(post -> post.event().fail(cause));
    }

    private void match(Post mine, Queue<Post> own, Queue<Post> others) {
      Post other;
      CollectiveException before;
      synchronized (this) {
        before = failure;
        other = before == null ? others.poll() : null;
        if (before == null && other == null) {
          own.add(mine);
        }
      }
      if (before != null) {
        mine.event().fail(before);
      } else if (other != null) {
        Post send = own == sends ? mine : other;
        Post receive = own == sends ? other : mine;
        deliver(send, receive);
      }
    }

    private void deliver(Post send, Post receive) {
      TypedBuffer source = send.buffer();
      TypedBuffer target = receive.buffer();
      if (source.type() != target.type() || source.count() != target.count()) {
        CollectiveException mismatch = mismatch(source, target);
        send.event().fail(mismatch);
        receive.event().fail(mismatch);
        return;
      }
      Memory.copy(source.address(), target.address(), source.bytes());
      send.event().complete();
      receive.event().complete();
    }

    private CollectiveException mismatch(TypedBuffer source, TypedBuffer target) {
      return new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          List.of(Math.min(from, to), Math.max(from, to)),
          "rank "
              + from
              + " sends "
              + source.count()
              + " "
              + source.type()
              + " but rank "
              + to
              + " receives "
              + target.count()
              + " "
              + target.type());
    }
  }
}
