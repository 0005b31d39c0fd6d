package io.weft.collectives.contract;

import static org.assertj.core.api.Assertions.fail;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.opentest4j.TestAbortedException;

/** A communicator whose ranks are threads of this process. */
public final class RankGang implements AutoCloseable {
  /** The work of one rank. */
  public interface Part {
    void run(Communicator communicator) throws Exception;
  }

  /** The work of one rank, with a result. */
  public interface Request<T> {
    T ask(Communicator communicator) throws Exception;
  }

  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  private final List<Communicator> ranks = new ArrayList<>();
  private final ExecutorService threads;

  private RankGang(int nranks) {
    this.threads =
        Executors.newFixedThreadPool(
            nranks,
            task -> {
              Thread thread = new Thread(task, "rank");
              thread.setDaemon(true);
              return thread;
            });
  }

  public static RankGang open(CommunicatorFactory factory, int nranks, Duration timeout) {
    List<CommunicatorFactory> factories = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      factories.add(factory);
    }
    return open(factories, timeout);
  }

  /** One factory per rank, for ranks that differ. */
  public static RankGang open(List<CommunicatorFactory> factories, Duration timeout) {
    int nranks = factories.size();
    RankGang gang = new RankGang(nranks);
    CommunicatorOptions options = CommunicatorOptions.DEFAULT.withTimeout(timeout);
    List<Bootstrap> ends = ThreadBootstrap.open(nranks);
    List<Callable<Communicator>> creations = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      Bootstrap end = ends.get(rank);
      CommunicatorFactory factory = factories.get(rank);
      creations.add(
          () -> {
            try (end) {
              return factory.create(end, options);
            }
          });
    }
    gang.ranks.addAll(gang.join(gang.start(creations)));
    return gang;
  }

  public int nranks() {
    return ranks.size();
  }

  public Communicator rank(int rank) {
    return ranks.get(rank);
  }

  /** Runs the part on every rank and fails with what any of them threw. */
  public void run(Part part) {
    ask(
        communicator -> {
          part.run(communicator);
          return null;
        });
  }

  /** Runs the part on every rank and fails with the exception of any of them. */
  public <T> List<T> ask(Request<T> request) {
    return join(askAsync(request));
  }

  /** Starts the request on every rank; the caller waits for the answers. */
  public <T> List<Future<T>> askAsync(Request<T> request) {
    List<Callable<T>> calls = new ArrayList<>();
    for (Communicator rank : ranks) {
      calls.add(() -> request.ask(rank));
    }
    return start(calls);
  }

  private <T> List<Future<T>> start(List<Callable<T>> calls) {
    List<Future<T>> futures = new ArrayList<>();
    for (Callable<T> call : calls) {
      futures.add(threads.submit(call));
    }
    return futures;
  }

  private <T> List<T> join(List<Future<T>> futures) {
    List<T> results = new ArrayList<>();
    AssertionError failure = null;
    for (int rank = 0; rank < futures.size(); rank++) {
      try {
        results.add(futures.get(rank).get(TIMEOUT.toSeconds(), TimeUnit.SECONDS));
      } catch (ExecutionException e) {
        if (e.getCause() instanceof TestAbortedException aborted) {
          throw aborted;
        }
        AssertionError next =
            new AssertionError("rank " + rank + ": " + e.getCause(), e.getCause());
        if (failure == null) {
          failure = next;
        } else {
          failure.addSuppressed(next);
        }
      } catch (TimeoutException e) {
        throw new AssertionError("rank " + rank + " did not end within " + TIMEOUT, e);
      } catch (InterruptedException e) {
        fail("interrupted");
      }
    }
    if (failure != null) {
      throw failure;
    }
    return results;
  }

  /** Closes all ranks at once. */
  @Override
  public void close() {
    try {
      run(Communicator::close);
    } finally {
      threads.shutdownNow();
    }
  }
}
