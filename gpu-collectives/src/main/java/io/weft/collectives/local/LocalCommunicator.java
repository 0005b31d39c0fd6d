package io.weft.collectives.local;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Topology;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.Receive;
import io.weft.collectives.operation.Send;
import io.weft.device.Deadline;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import java.util.ArrayList;
import java.util.List;
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
   * Creates a communicator, as a {@link io.weft.collectives.CommunicatorFactory}. All ranks have to
   * be in this process.
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
}
