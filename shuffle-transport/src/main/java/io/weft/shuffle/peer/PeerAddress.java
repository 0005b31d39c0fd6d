package io.weft.shuffle.peer;

import io.weft.shuffle.peer.PathRules.PathEnd;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;

/**
 * The address that an executor announces: how to reach its blocks through shared memory or TCP, and
 * its GPU.
 *
 * @param executorId Spark's executor id
 * @param incarnation 8 hex digits, different for each start of an executor
 * @param host name or address that peers connect to
 * @param port of the block server
 * @param folder the executor's folder in shared memory, an absolute path on its host; empty if the
 *     address was sent to another kernel
 * @param token contents of the token file in {@code folder}, or empty
 * @param bootId boot id of its kernel, equal for executors on one kernel; empty if the address was
 *     sent to another kernel
 * @param version of Weft that it runs
 * @param gpu for arrays, or the reason for having none
 */
public record PeerAddress(
    String executorId,
    String incarnation,
    String host,
    int port,
    String folder,
    String token,
    String bootId,
    String version,
    GpuEnd gpu)
    implements Serializable {
  public PeerAddress {
    Objects.requireNonNull(executorId, "executorId");
    Objects.requireNonNull(incarnation, "incarnation");
    Objects.requireNonNull(host, "host");
    Objects.requireNonNull(folder, "folder");
    Objects.requireNonNull(token, "token");
    Objects.requireNonNull(bootId, "bootId");
    Objects.requireNonNull(version, "version");
    // An executor with another version of Weft does not announce a GPU.
    gpu = gpu == null ? GpuEnd.without("its executor announced no GPU") : gpu;
    if (port < 0 || port > 65535) {
      throw new IllegalArgumentException("port of executor " + executorId + ": " + port);
    }
  }

  /** Creates the address of an executor without a GPU. */
  public PeerAddress(
      String executorId,
      String incarnation,
      String host,
      int port,
      String folder,
      String token,
      String bootId,
      String version) {
    this(executorId, incarnation, host, port, folder, token, bootId, version, null);
  }

  /** Returns this address with a GPU, or with the reason for having none. */
  public PeerAddress withGpu(GpuEnd found) {
    return new PeerAddress(
        executorId, incarnation, host, port, folder, token, bootId, version, found);
  }

  /**
   * Returns what an executor on another kernel needs: without boot id, folder and token, which is a
   * secret.
   */
  public PeerAddress withoutFolder() {
    return new PeerAddress(executorId, incarnation, host, port, "", "", "", version, gpu);
  }

  /** The properties that the choice of a path depends on. */
  public PathEnd pathEnd() {
    return new PathEnd(bootId, gpu);
  }

  /** Omits the token, which is a secret. */
  @Override
  public String toString() {
    return "executor "
        + executorId
        + " ("
        + host
        + ":"
        + port
        + ", incarnation "
        + incarnation
        + ")";
  }

  /**
   * Caches the addresses of executors from a directory, until an address is forgotten. Tasks that
   * ask for the same executor at the same time share one request. Thread-safe.
   */
  public static final class KnownPeers {
    /**
     * Addresses that are kept, of running and ended executors: twice the executors of the largest
     * application that was measured. Beyond it all are asked for again, in one message for a task.
     */
    static final int MAX_KNOWN = 8000;

    private final PeerDirectory directory;

    /** Addresses, and requests in flight. A request of an ended executor completes with null. */
    private final ConcurrentHashMap<String, CompletableFuture<PeerAddress>> known =
        new ConcurrentHashMap<>();

    /** Starts without addresses. */
    public KnownPeers(PeerDirectory directory) {
      this.directory = directory;
    }

    /**
     * Returns the address of an executor.
     *
     * @throws IOException if it has ended, or the directory does not answer in time
     */
    public PeerAddress find(String executorId) throws IOException {
      PeerAddress address = find(Set.of(executorId)).get(executorId);
      if (address == null) {
        throw new IOException("executor " + executorId + " has ended: it has no address");
      }
      return address;
    }

    /**
     * Returns the addresses of executors, by id. Those of ended executors may be missing.
     *
     * @throws InterruptedIOException if the thread is interrupted
     * @throws IOException if the directory does not answer in time
     */
    public Map<String, PeerAddress> find(Set<String> executorIds) throws IOException {
      Map<String, CompletableFuture<PeerAddress>> mine = new HashMap<>();
      Map<String, CompletableFuture<PeerAddress>> all = new HashMap<>();
      for (String id : executorIds) {
        CompletableFuture<PeerAddress> request = known.get(id);
        if (request == null) {
          if (known.size() >= MAX_KNOWN) {
            known.values().removeIf(CompletableFuture::isDone);
          }
          CompletableFuture<PeerAddress> fresh = new CompletableFuture<>();
          request = known.putIfAbsent(id, fresh);
          if (request == null) {
            request = fresh;
            mine.put(id, fresh);
          }
        }
        all.put(id, request);
      }
      if (!mine.isEmpty()) {
        ask(mine);
      }
      return answers(all, mine.keySet());
    }

    /** The number of addresses and requests. */
    int size() {
      return known.size();
    }

    /** Completes the requests in any case, because other threads wait for them. */
    private void ask(Map<String, CompletableFuture<PeerAddress>> requests) {
      try {
        Map<String, PeerAddress> found = directory.lookup(requests.keySet());
        requests.forEach((id, request) -> end(id, request, found.get(id)));
      } catch (IOException | RuntimeException | Error e) {
        requests.forEach(
            (id, request) -> {
              known.remove(id, request);
              request.completeExceptionally(e);
            });
      }
    }

    /** Forgets an unknown executor first, so that a thread that waits for it asks again. */
    private void end(String id, CompletableFuture<PeerAddress> request, PeerAddress address) {
      if (address == null) {
        known.remove(id, request);
      }
      request.complete(address);
    }

    /** Waits for requests. The directory's timeout limits the wait. */
    private Map<String, PeerAddress> answers(
        Map<String, CompletableFuture<PeerAddress>> requests, Set<String> mine) throws IOException {
      Map<String, PeerAddress> found = new HashMap<>();
      Set<String> unanswered = new HashSet<>();
      for (Map.Entry<String, CompletableFuture<PeerAddress>> request : requests.entrySet()) {
        String id = request.getKey();
        try {
          PeerAddress address = request.getValue().get();
          if (address != null) {
            found.put(id, address);
          }
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new InterruptedIOException("interrupted while looking up executor " + id);
        } catch (ExecutionException e) {
          if (!(e.getCause() instanceof InterruptedIOException interrupt)) {
            throw new IOException(e.getCause().getMessage(), e.getCause());
          }
          if (mine.contains(id)) {
            throw interrupt;
          }
          unanswered.add(id); // Another task asked and was interrupted.
        }
      }
      if (!unanswered.isEmpty()) {
        found.putAll(find(unanswered));
      }
      return found;
    }

    /** Forgets an address that does not answer, so that the directory is queried again. */
    public void forget(PeerAddress address) {
      known.computeIfPresent(
          address.executorId(),
          (id, request) ->
              request.isDone()
                      && !request.isCompletedExceptionally()
                      && address.equals(request.join())
                  ? null
                  : request);
    }
  }
}
